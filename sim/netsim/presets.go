package netsim

import (
	"fmt"
	"strings"
	"time"

	"interleave/internal/names"
	"interleave/sim/rng"
)

// PresetInfo describes a preset.
type PresetInfo struct {
	Name  string
	Help  string   // one sentence
	Zones []string // names, in order
}

type preset struct {
	PresetInfo
	// roundTrip is between zones, from row to column, in microseconds; within
	// a zone on the diagonal.
	roundTrip      [][]int64
	sigma          float64 // of the lognormal jitter
	bytesPerSecond int64
}

// The round trips are published measurements: IBM Cloud, "Network latency
// dashboards", VPC documentation, https://cloud.ibm.com/docs/vpc?topic=vpc-network-latency-dashboard.
// They are means over 30 days of netperf TCP_RR between Linux virtual machines:
// between regions and between zones those of 3 February to 3 March 2024, within
// a zone those of Dallas, 17 August to 15 September 2024. The two directions of
// a pair were measured apart and differ by up to a millisecond; the table keeps
// that.
//
// One way is taken as half the round trip from the sender. The source gives no
// distribution: the jitter is ours, lognormal with the half round trip as its
// median and a sigma of 0.05 between regions (a p99 12 % above the median), 0.1
// between zones and 0.2 in a LAN. So are the link speeds, 10 Gbit/s and between
// regions 1 Gbit/s.
var presets = []preset{
	{
		PresetInfo: PresetInfo{
			Name:  "lan",
			Help:  "one zone, 0.09 ms round trip (IBM Cloud, Dallas, 2024), 10 Gbit/s",
			Zones: []string{"lan"},
		},
		roundTrip:      [][]int64{{90}},
		sigma:          0.2,
		bytesPerSecond: 1_250_000_000,
	},
	{
		PresetInfo: PresetInfo{
			Name:  "three-zones",
			Help:  "three availability zones of one region, 1.5 to 2 ms round trip between them (IBM Cloud, Tokyo, 2024), 10 Gbit/s",
			Zones: []string{"tokyo-1", "tokyo-2", "tokyo-3"},
		},
		roundTrip: [][]int64{
			{90, 1750, 1540},
			{1750, 90, 1970},
			{1540, 1970, 90},
		},
		sigma:          0.1,
		bytesPerSecond: 1_250_000_000,
	},
	{
		PresetInfo: PresetInfo{
			Name:  "five-regions",
			Help:  "five regions on four continents, 32 to 286 ms round trip (IBM Cloud network latency dashboards, February 2024), 1 Gbit/s",
			Zones: []string{"dallas", "washington", "london", "tokyo", "sao-paulo"},
		},
		roundTrip: [][]int64{
			{90, 32_000, 113_000, 142_000, 144_000},
			{32_000, 90, 75_000, 167_000, 119_000},
			{113_000, 75_000, 90, 247_000, 186_000},
			{141_000, 167_000, 246_000, 90, 286_000},
			{145_000, 120_000, 185_000, 285_000, 90},
		},
		sigma:          0.05,
		bytesPerSecond: 125_000_000,
	},
}

const (
	// presetLoopback is a message between two processes of one machine.
	presetLoopback = 10 * time.Microsecond
	// presetRetransmit is the least that Linux adds to the smoothed round trip
	// in its retransmission timeout.
	presetRetransmit = 200 * time.Millisecond
)

// Presets returns the presets, in the order of their extent.
func Presets() []PresetInfo {
	infos := make([]PresetInfo, len(presets))
	for i := range presets {
		infos[i] = presets[i].PresetInfo
	}
	return infos
}

// Preset returns the named network for the given number of machines, without
// loss and without kinds. Machine i is site i, in zone i modulo the number of
// zones; the clients of zone z are at site machines + z.
func Preset(name string, machines int) (Config, error) {
	if machines < 1 {
		return Config{}, fmt.Errorf("machines: %d: want at least 1", machines)
	}
	for i := range presets {
		if presets[i].Name == name {
			return presets[i].config(machines), nil
		}
	}
	known := make([]string, len(presets))
	for i := range presets {
		known[i] = presets[i].Name
	}
	hint := ""
	if n := names.Nearest(name, known); n != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", n)
	}
	return Config{}, fmt.Errorf("network: %q is unknown%s: want one of %s", name, hint, strings.Join(known, ", "))
}

func (p *preset) config(machines int) Config {
	zones := len(p.Zones)
	c := Config{
		Zones:             p.Zones,
		Machines:          machines,
		Latency:           make([][]rng.Dist, zones),
		Loopback:          rng.Constant(presetLoopback),
		RetransmitTimeout: presetRetransmit,
		BytesPerSecond:    p.bytesPerSecond,
	}
	for i := range machines {
		c.Sites = append(c.Sites, Zone(i%zones))
	}
	for z := range zones {
		c.Sites = append(c.Sites, Zone(z))
		for _, us := range p.roundTrip[z] {
			half := time.Duration(us) * time.Microsecond / 2
			c.Latency[z] = append(c.Latency[z], rng.Lognormal(half, p.sigma))
		}
	}
	return c
}
