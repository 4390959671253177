package rng

import "math"

// The functions of this file give the same bits on every processor. Their
// errors against the exact value are a few units in the last place, which the
// tests hold; nothing here needs more.

const (
	// ln 2 in two parts: the high one has 32 significant bits, so that its
	// product with a binary exponent is exact.
	ln2Hi = 0x1.62e42feep-1
	ln2Lo = 0x1.a39ef35793c76p-33
	log2e = 0x1.71547652b82fep+0
)

// ln returns the natural logarithm of x. REQUIRES: x is positive and normal.
//
// With x = m·2^k and m within a factor √2 of 1, ln m = 2·atanh((m-1)/(m+1)),
// whose series in the square z is summed to 1/19: z is at most 0.0295, and the
// first term left out below 2^-55 of the sum. Even and odd powers of z are
// summed apart, here and below, so that the processor can do both at once.
func ln(x float64) float64 {
	const sqrtHalf = 0x3fe6a09e667f3bcd // bits of √½
	b := math.Float64bits(x)
	e := int64(b-sqrtHalf) >> 52
	m := math.Float64frombits(b - uint64(e)<<52)
	f := m - 1
	s := f / (2 + f)
	z := float64(s * s)
	y := float64(z * z)
	even := float64(y*(float64(y*(float64(y*(float64(y*(1./19))+1./15))+1./11))+1./7)) + 1./3
	odd := float64(y*(float64(y*(float64(y*(1./17))+1./13))+1./9)) + 1./5
	r := float64(z * (even + float64(z*odd)))
	k := float64(e)
	return float64(k*ln2Hi) + (float64(2*s) + (float64(2*float64(s*r)) + float64(k*ln2Lo)))
}

// ln1p returns ln(1+x) without losing the small ones. REQUIRES: x > -1, finite.
//
// After Kahan: the rounding of 1+x is known exactly, and ln is nearly linear there.
func ln1p(x float64) float64 {
	u := 1 + x
	if u == 1 {
		return x
	}
	return ln(u) + (x-(u-1))/u
}

// expm1Small returns e^r - 1 for |r| at most ln(2)/2 and a little, by the
// series to 1/13!: the first term left out is below 2^-57 of the sum.
func expm1Small(r float64) float64 {
	y := float64(r * r)
	even := float64(y*(float64(y*(float64(y*(float64(y*(float64(y*(1./479001600))+1./3628800))+1./40320))+1./720))+1./24)) + 1./2
	odd := float64(y*(float64(y*(float64(y*(float64(y*(float64(y*(1./6227020800))+1./39916800))+1./362880))+1./5040))+1./120)) + 1./6
	return r + float64(y*(even+float64(r*odd)))
}

// exp returns e^x: 0 below -708 and +Inf above 709, where the result or the
// power of two in it would leave the normal range.
func exp(x float64) float64 {
	switch {
	case x < -708:
		return 0
	case x > 709:
		return math.Inf(1)
	}
	k := math.Floor(float64(x*log2e) + 0.5)
	r := (x - float64(k*ln2Hi)) - float64(k*ln2Lo)
	pow := math.Float64frombits(uint64(int64(k)+1023) << 52)
	if k == 1024 { // 2^1024 is not a number, 2·2^1023 times less than one is
		return float64((1+expm1Small(r))*math.Float64frombits(uint64(2046)<<52)) * 2
	}
	return float64((1 + expm1Small(r)) * pow)
}

// expm1 returns e^x - 1 without losing the small ones.
func expm1(x float64) float64 {
	if math.Abs(x) <= 0.35 {
		return expm1Small(x)
	}
	return exp(x) - 1
}

// unit returns the middle of the cell of width 2^-52 that u falls in: a number
// in (0, 1), never an end, with unit(^u) exactly 1 - unit(u). A bit more would
// round the last cell up to 1.
func unit(u uint64) float64 { return float64((float64(u>>12) + 0.5) / (1 << 52)) }

// The rational approximations of the normal quantile, from Wichura,
// "Algorithm AS 241: the percentage points of the normal distribution",
// Applied Statistics 37 (1988), routine PPND16.
var (
	normMidNum = [8]float64{
		3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
		4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3,
	}
	normMidDen = [8]float64{
		1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3,
		2.1213794301586595867e4, 3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3,
	}
	normTailNum = [8]float64{
		1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
		1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4,
	}
	normTailDen = [8]float64{
		1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1,
		1.48103976427480074590e-1, 1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9,
	}
	normFarNum = [8]float64{
		6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
		2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7,
	}
	normFarDen = [8]float64{
		1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2,
		7.86869131145613259100e-4, 1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15,
	}
)

// normal returns the standard normal quantile of unit(u): within ±8.3.
func normal(u uint64) float64 {
	p := unit(u)
	q := p - 0.5
	if math.Abs(q) <= 0.425 {
		r := 0.180625 - float64(q*q)
		return float64(q*poly(r, &normMidNum)) / poly(r, &normMidDen)
	}
	sign := -1.0
	if q > 0 {
		// The upper tail is the lower one of the complement, so both are as fine.
		sign, p = 1, unit(^u)
	}
	r := math.Sqrt(-ln(p))
	if r <= 5 {
		r -= 1.6
		return float64(sign * (poly(r, &normTailNum) / poly(r, &normTailDen)))
	}
	r -= 5
	return float64(sign * (poly(r, &normFarNum) / poly(r, &normFarDen)))
}

// poly returns c[0] + c[1]·x + ... + c[7]·x^7.
func poly(x float64, c *[8]float64) float64 {
	y := float64(x * x)
	even := float64(y*(float64(y*(float64(y*c[6])+c[4]))+c[2])) + c[0]
	odd := float64(y*(float64(y*(float64(y*c[7])+c[5]))+c[3])) + c[1]
	return even + float64(x*odd)
}
