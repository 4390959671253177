package lint

import (
	"go/ast"
	"slices"
	"strconv"
	"strings"
)

// A layer is one step of the one way in which imports point: a package may
// import packages of lower layers, and none of its own layer or above except
// under the rules of mayImport.
type layer int

const (
	layerAid      layer = iota // what any part may use: imports nothing of the project
	layerBase                  // virtual time and randomness
	layerDevice                // networks, stations, fault plans, the bubble raft runs in
	layerContract              // what a transaction is
	layerParts                 // protocols, nodes, workloads
	layerReports               // metrics and tables
	layerRun                   // assembles a cluster and runs it
	layerCommand               // the command line
	layerHabits                // checks and scripts: nobody imports them, and they import no part of the simulator
)

// places lists where each directory stands; a subdirectory not listed stands
// with its parent.
var places = []struct {
	dir string
	layer
}{
	{"sim/event", layerBase},
	{"sim/rng", layerBase},
	{"sim/clock", layerDevice},
	{"sim/netsim", layerDevice},
	{"sim/station", layerDevice},
	{"sim/vtime", layerDevice},
	{"sim/fault", layerDevice},
	{"txnproto", layerContract},
	{"txnproto/*", layerParts},
	{"nodes", layerParts},
	{"workloads", layerParts},
	{"reports", layerReports},
	{"sim", layerRun},
	{"cmd", layerCommand},
	{"internal/memory", layerAid},
	{"internal/names", layerAid},
	{"internal/layout", layerAid},
	{"internal/units", layerAid},
	{"internal/lint", layerHabits},
	{"scripts", layerHabits},
}

const judge = "txnproto/history"

// trials are the packages that put protocols before the judge, for tests.
var trials = []string{"txnproto/controltest", "txnproto/conformance"}

// placeOf returns the directory of places that dir is in, and its layer.
func placeOf(dir string) (place string, l layer, ok bool) {
	best := -1
	for i, p := range places {
		parent, star := strings.CutSuffix(p.dir, "/*")
		in := under(dir, parent)
		if star {
			in = in && dir != parent
		}
		if in && (best < 0 || len(p.dir) > len(places[best].dir)) {
			best = i
		}
	}
	if best < 0 {
		return "", 0, false
	}
	place = places[best].dir
	if strings.HasSuffix(place, "/*") {
		// Each family of protocols is a place of its own.
		place = strings.Join(strings.SplitN(dir, "/", 3)[:2], "/")
	}
	return place, places[best].layer, true
}

// under reports whether dir is parent or below it.
func under(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }

// mayImport says why from may not import to, or nothing when it may.
func mayImport(from, to string) (objection string) {
	fromPlace, fromLayer, _ := placeOf(from)
	toPlace, toLayer, ok := placeOf(to)
	switch {
	case !ok:
		return "" // reported where that package is
	case fromLayer == layerHabits || toLayer == layerHabits:
		if fromPlace != toPlace {
			return "the project's checks and its simulator do not import each other"
		}
		return ""
	case fromPlace == judge && toLayer > layerBase && toPlace != judge:
		return "the judge does not know the judged: it imports only sim/event and sim/rng"
	case toLayer < fromLayer, fromPlace == toPlace:
		return ""
	case toLayer > fromLayer:
		return toPlace + " stands above " + fromPlace
	case protocolFamily(fromPlace) && protocolFamily(toPlace):
		return "" // a whole system is composed of families: locking under snapshots
	case slices.Contains(trials, fromPlace) && toPlace == judge:
		return ""
	default:
		return fromPlace + " and " + toPlace + " stand side by side and do not know each other"
	}
}

func protocolFamily(place string) bool { return under(place, "txnproto") && place != judge }

func checkLayers(m *Module) []Finding {
	var out []Finding
	for _, p := range m.Packages {
		if _, _, ok := placeOf(p.Dir); !ok && len(p.Files) > 0 {
			f := p.Files[0]
			out = append(out, m.at(f.AST.Package, "package "+p.Dir+" has no place in the layers", "give it one in internal/lint/layers.go, or move it"))
			continue
		}
		for _, f := range p.Files {
			for spec, importPath := range imports(f) {
				to, own := m.within(importPath)
				if !own {
					continue
				}
				if why := mayImport(p.Dir, to); why != "" {
					out = append(out, m.at(spec.Pos(), "imports "+to+": "+why, "move what is shared to a lower layer, or let "+p.Dir+" declare the interface it needs"))
				}
			}
		}
	}
	return out
}

// imports yields a file's import specs with their unquoted paths.
func imports(f *File) func(yield func(*ast.ImportSpec, string) bool) {
	return func(yield func(*ast.ImportSpec, string) bool) {
		for _, spec := range f.AST.Imports {
			if p, err := strconv.Unquote(spec.Path.Value); err == nil && !yield(spec, p) {
				return
			}
		}
	}
}

// A zone is a part of the module in which a rule holds.
type zone []string

func (z zone) holds(dir string) bool {
	return slices.ContainsFunc(z, func(parent string) bool { return under(dir, parent) })
}

var (
	// core is what the event loop calls: single-threaded state machines.
	core = zone{"sim/event", "sim/rng", "sim/clock", "sim/netsim", "sim/station", "sim/fault", "txnproto", "nodes", "workloads", "reports"}
	// floatCore is where a floating-point result reaches the simulation.
	floatCore = zone{"sim", "txnproto", "nodes", "workloads"}
)

// raftHost reports whether a file hosts the real raft library, which brings
// goroutines, locks and stores of its own into virtual time.
func raftHost(name string) bool { return strings.HasPrefix(name, "nodes/raft") }
