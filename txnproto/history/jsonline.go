package history

import (
	"fmt"
	"math"
	"strconv"
)

// lineParser parses a line of JSON made of objects, arrays, whole numbers and
// literals, without building values: a history file has millions of lines.
type lineParser struct {
	b   []byte
	off int
}

func (p *lineParser) reset(b []byte) { p.b, p.off = b, 0 }

// peek returns the next character after blanks, 0 at the end.
func (p *lineParser) peek() byte {
	for p.off < len(p.b) {
		switch p.b[p.off] {
		case ' ', '\t', '\r':
			p.off++
		default:
			return p.b[p.off]
		}
	}
	return 0
}

// got describes what stands at the cursor, for errors.
func (p *lineParser) got() string {
	if p.peek() == 0 {
		return "the end of the line"
	}
	return strconv.QuoteRune(rune(p.b[p.off]))
}

func (p *lineParser) want(c byte) error {
	if p.peek() != c {
		return fmt.Errorf("column %d: want %q, got %s", p.off+1, c, p.got())
	}
	p.off++
	return nil
}

// end accepts nothing but blanks.
func (p *lineParser) end() error {
	if p.peek() != 0 || p.off < len(p.b) {
		return fmt.Errorf("column %d: want the end of the line, got %s", p.off+1, p.got())
	}
	return nil
}

// word accepts a literal such as null and reports whether it stood there.
func (p *lineParser) word(w string) bool {
	p.peek()
	if len(p.b)-p.off < len(w) || string(p.b[p.off:p.off+len(w)]) != w {
		return false
	}
	p.off += len(w)
	return true
}

// number accepts a whole number from 0 to limit.
func (p *lineParser) number(limit uint64) (uint64, error) {
	p.peek()
	start := p.off
	var v uint64
	for p.off < len(p.b) && '0' <= p.b[p.off] && p.b[p.off] <= '9' {
		d := uint64(p.b[p.off] - '0')
		if v > (limit-d)/10 {
			return 0, fmt.Errorf("column %d: number above %d", start+1, limit)
		}
		v = v*10 + d
		p.off++
	}
	switch {
	case p.off == start:
		return 0, fmt.Errorf("column %d: want a whole number from 0 to %d, got %s", start+1, limit, p.got())
	case p.b[start] == '0' && p.off > start+1:
		return 0, fmt.Errorf("column %d: number with a leading zero", start+1)
	case p.off < len(p.b) && (p.b[p.off] == '.' || p.b[p.off]|0x20 == 'e'):
		return 0, fmt.Errorf("column %d: want a whole number, without fraction or exponent", start+1)
	}
	return v, nil
}

// signed accepts a whole number of 64 bits.
func (p *lineParser) signed() (int64, error) {
	if p.peek() != '-' {
		v, err := p.number(math.MaxInt64)
		return int64(v), err
	}
	p.off++
	if p.off < len(p.b) && (p.b[p.off] < '0' || p.b[p.off] > '9') {
		return 0, fmt.Errorf("column %d: want a digit after the minus, got %s", p.off+1, p.got())
	}
	v, err := p.number(1 << 63)
	return -int64(v), err
}

// time accepts a moment.
func (p *lineParser) time() (Time, error) {
	v, err := p.signed()
	return Time(v), err
}

// object accepts an object of fields whose values field parses.
func (p *lineParser) object(field func(name string) error) error {
	if err := p.want('{'); err != nil {
		return err
	}
	if p.peek() == '}' {
		p.off++
		return nil
	}
	for {
		name, err := p.name()
		if err != nil {
			return err
		}
		if err := field(name); err != nil {
			return err
		}
		if p.peek() == '}' {
			p.off++
			return nil
		}
		if err := p.want(','); err != nil {
			return err
		}
	}
}

// name accepts a field's name and the colon after it. Names have no escapes.
func (p *lineParser) name() (string, error) {
	if err := p.want('"'); err != nil {
		return "", err
	}
	start := p.off
	for p.off < len(p.b) && p.b[p.off] != '"' {
		p.off++
	}
	name := string(p.b[start:p.off])
	if err := p.want('"'); err != nil {
		return "", err
	}
	return name, p.want(':')
}

// array accepts an array whose items item parses.
func (p *lineParser) array(item func() error) error {
	if err := p.want('['); err != nil {
		return err
	}
	if p.peek() == ']' {
		p.off++
		return nil
	}
	for {
		if err := item(); err != nil {
			return err
		}
		if p.peek() == ']' {
			p.off++
			return nil
		}
		if err := p.want(','); err != nil {
			return err
		}
	}
}

// readPair accepts [key, version] and appends it.
func (p *lineParser) readPair(out *[]Read) error {
	if err := p.want('['); err != nil {
		return err
	}
	k, err := p.number(math.MaxUint64)
	if err != nil {
		return err
	}
	if err := p.want(','); err != nil {
		return err
	}
	v, err := p.number(math.MaxInt64)
	if err != nil {
		return err
	}
	*out = append(*out, Read{Key(k), Version(v)})
	return p.want(']')
}
