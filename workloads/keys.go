package workloads

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// keyParams are the parameters by which a workload's keys are chosen: the
// distribution and those of every distribution there is. Parameters of others
// than the chosen one have no effect, so one setting can compare several.
func keyParams(distribution string) []txnproto.Param {
	choices := make([]string, 0, 8)
	params := []txnproto.Param{{}}
	users := map[string][]string{}
	for _, c := range rng.Choosers() {
		choices = append(choices, c.Name)
		for _, p := range c.Params {
			users[p.Name] = append(users[p.Name], c.Name)
			if len(users[p.Name]) > 1 {
				continue
			}
			params = append(params, txnproto.Param{
				Name: p.Name, Kind: txnproto.ParamFloat, Default: strconv.FormatFloat(p.Default, 'g', -1, 64), Help: p.Help + ", " + p.Range(),
			})
		}
	}
	for i := range params[1:] {
		p := &params[i+1]
		p.Help += " (" + strings.Join(users[p.Name], ", ") + ")"
	}
	params[0] = txnproto.Param{
		Name: "distribution", Kind: txnproto.ParamChoice, Default: distribution, Choices: choices,
		Help: "which keys are accessed",
	}
	return params
}

// newChooser makes the chooser that p asks for, over n keys.
func newChooser(p txnproto.Params, n uint64) (rng.Chooser, error) {
	name := p.Choice("distribution")
	info, err := rng.FindChooser(name)
	if err != nil {
		return nil, err
	}
	params := make(map[string]float64, len(info.Params))
	for _, d := range info.Params {
		params[d.Name] = p.Float(d.Name)
	}
	return rng.NewChooser(name, n, params)
}

// keysParam is the number of rows at the start.
func keysParam(keys int, most uint64) txnproto.Param {
	return txnproto.Param{
		Name: "keys", Kind: txnproto.ParamInt, Default: strconv.Itoa(keys), Min: 1, Max: float64(most),
		Help: "rows in the database at the start",
	}
}

// valueBytesParam is the weight of a row.
func valueBytesParam(bytes int) txnproto.Param {
	return txnproto.Param{
		Name: "value-bytes", Kind: txnproto.ParamInt, Default: strconv.Itoa(bytes), Min: 1, Max: 1 << 20,
		Help: "what a row weighs in messages and on disk, in bytes",
	}
}

const opThinkName = "op-think"

// opThinkParam is the pause inside a transaction.
func opThinkParam(pause string) txnproto.Param {
	return txnproto.Param{
		Name: opThinkName, Kind: txnproto.ParamString, Default: pause,
		Help: "pause between two operations of a transaction, a distribution such as exp:1ms",
	}
}

func opThink(p txnproto.Params) (rng.Dist, error) {
	d, err := rng.ParseDist(p.String(opThinkName))
	if err != nil {
		return d, fmt.Errorf("%s: %w", opThinkName, err)
	}
	return d, nil
}

// streams names the sources of chance of one generator. Program number n has
// stream n of each, so it can be drawn again at any time.
type streams struct{ shape, keys, fresh, think uint64 }

func newStreams(seed rng.Seed, name string) streams {
	return streams{
		shape: seed.Key(name + "/shape"),
		keys:  seed.Key(name + "/keys"),
		fresh: seed.Key(name + "/fresh"),
		think: seed.Key(name + "/op-think"),
	}
}

// draws is what a draw works with. It belongs to the workload, not to the
// program, and is used within one call only.
type draws struct {
	stream   rng.Stream
	distinct rng.Distinct
}

// shapeOf returns the stream of program n's shape.
func (d *draws) shapeOf(st *streams, n uint64) *rng.Stream {
	d.stream = rng.StreamOf(st.shape, n)
	return &d.stream
}

// keysOf returns the stream of program n's keys: its own, or, where fresh names
// an attempt, that attempt's. No key is taken yet.
func (d *draws) keysOf(st *streams, n uint64, fresh int) *rng.Stream {
	d.distinct.Reset()
	d.stream = rng.StreamOf(st.keys, n)
	if fresh > 0 {
		d.stream = rng.StreamOf(rng.Hash(st.fresh, n), uint64(fresh))
	}
	return &d.stream
}

// pacer inserts the pauses between a program's operations. The pause before an
// operation is the same in every attempt.
type pacer struct {
	think  rng.Dist
	key    uint64
	paused bool // the pause before the coming operation is over
}

func (c *pacer) start(think rng.Dist, st *streams, n uint64) {
	*c = pacer{think: think, key: rng.Hash(st.think, n)}
}

// pause fills in a pause due before operation at, counted from 0, if any.
func (c *pacer) pause(at int, a *txnproto.Action) bool {
	if at == 0 || c.paused || c.think.IsZero() {
		c.paused = false
		return false
	}
	c.paused = true
	a.Think = c.think.At(rng.Hash(c.key, uint64(at)))
	return true
}

// parseShare reads a share, a number from 0 to 1.
func parseShare(name, text string) (float64, error) {
	x, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil || !(x >= 0 && x <= 1) {
		return 0, fmt.Errorf("%s is %q, allowed are numbers from 0 to 1", name, text)
	}
	return math.Abs(x), nil // not -0
}
