package workloads

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"interleave/sim/rng"
	"interleave/txnproto"
)

// YCSBFile is what a property file of YCSB's (the workloads/workloada of its
// distribution, and those written like it) says, in terms of this project.
//
// YCSB runs one operation a transaction, and so does what is read here: Params
// has ops=1. The caller lays settings of its own over Params, such as more
// operations, and makes the workload with New.
type YCSBFile struct {
	// Params are the parameters of the workload "ycsb" that the file sets,
	// YCSB's own defaults included.
	Params map[string]string
	// Requests is the operationcount, Clients the threadcount and Rate the
	// target in operations per second; 0 where the file does not say.
	Requests, Clients, Rate int
	// Notes say what in the file has no effect here, in order of line.
	Notes []Note
}

// Note is a remark on a line of a file.
type Note struct {
	Line int // 0: of the whole file
	Text string
}

// LoadYCSB reads the property file at path.
func LoadYCSB(path string) (*YCSBFile, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return ParseYCSB(path, string(text))
}

// ParseYCSB reads the text of a property file. name is the file's, for errors,
// which have the form name:line: and tell the property, its value and what is
// allowed. A property that is unknown, or asks for something that the simulator
// does not do, is an error; one that cannot matter here is a note.
func ParseYCSB(name, text string) (*YCSBFile, error) {
	props, err := parseProperties(text)
	if err != nil {
		return nil, fmt.Errorf("%s:%w", name, err)
	}
	r := ycsbReader{file: &YCSBFile{Params: map[string]string{"ops": "1"}}, seen: map[string]property{}}
	for _, p := range props {
		if old, twice := r.seen[p.name]; twice {
			r.note(p, fmt.Sprintf("%s was set in line %d; the later value counts", p.name, old.line))
		}
		r.seen[p.name] = p
	}
	for _, p := range props {
		if r.seen[p.name] != p {
			continue
		}
		if err := r.property(p); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, p.line, err)
		}
	}
	if line, err := r.finish(); err != nil {
		return nil, fmt.Errorf("%s:%d: %w", name, line, err)
	}
	return r.file, nil
}

// ycsbReader gathers the properties of one file.
type ycsbReader struct {
	file *YCSBFile
	seen map[string]property
}

func (r *ycsbReader) note(p property, text string) {
	r.file.Notes = append(r.file.Notes, Note{p.line, text})
}

// ycsbShares are the properties that share out the operations, with YCSB's defaults.
var ycsbShares = []struct {
	property string
	kind     txnproto.OpKind
	value    float64
}{
	{"readproportion", txnproto.Read, 0.95},
	{"updateproportion", txnproto.Write, 0.05},
	{"insertproportion", txnproto.Insert, 0},
	{"scanproportion", txnproto.Scan, 0},
	{"readmodifywriteproportion", txnproto.Modify, 0},
}

// ycsbNoEffect are properties that choose how YCSB itself runs, or what is
// inside a row; rows here are numbers with a weight.
var ycsbNoEffect = map[string]string{
	"readallfields":                          "a row is read whole",
	"writeallfields":                         "a row is written whole",
	"readallfieldsbyname":                    "a row is read whole",
	"dataintegrity":                          "values are checked by the history checker",
	"table":                                  "there is one table",
	"fieldnameprefix":                        "rows have no fields",
	"insertorder":                            "keys are spread over the shards by the cluster's placement",
	"zeropadding":                            "keys are numbers",
	"maxexecutiontime":                       "the length of a run is a setting of the run",
	"measurementtype":                        "metrics are the report's",
	"histogram.buckets":                      "metrics are the report's",
	"hdrhistogram.percentiles":               "metrics are the report's",
	"timeseries.granularity":                 "metrics are the report's",
	"measurement.interval":                   "metrics are the report's",
	"exporter":                               "the output is the command's",
	"exportfile":                             "the output is the command's",
	"status.interval":                        "the output is the command's",
	"db":                                     "the database is the simulated one",
	"core_workload_insertion_retry_limit":    "retries are the session's",
	"core_workload_insertion_retry_interval": "retries are the session's",
}

// ycsbDistributions are YCSB's request distributions in our names. Its zipfian
// one spreads the hot keys over all, as does the scrambled one here.
var ycsbDistributions = map[string]string{
	"uniform": "uniform", "zipfian": "scrambled-zipfian", "latest": "latest",
	"hotspot": "hotspot", "exponential": "exponential",
}

func (r *ycsbReader) property(p property) error {
	set := func(name, value string) { r.file.Params[name] = value }
	switch p.name {
	case "workload":
		if c := p.value[strings.LastIndexByte(p.value, '.')+1:]; c != "CoreWorkload" {
			return p.want("site.ycsb.workloads.CoreWorkload")
		}
	case "recordcount":
		return r.whole(p, 1, func(n int) { set("keys", strconv.Itoa(n)) })
	case "operationcount":
		return r.whole(p, 1, func(n int) { r.file.Requests = n })
	case "threadcount":
		return r.whole(p, 1, func(n int) { r.file.Clients = n })
	case "target":
		return r.whole(p, 0, func(n int) {
			r.file.Rate = n
			if n > 0 {
				r.note(p, "target is the rate at which requests arrive, whether or not the earlier ones are done; YCSB holds its threads back to it")
			}
		})
	case "requestdistribution":
		d, ok := ycsbDistributions[p.value]
		if !ok {
			return p.want("uniform, zipfian, latest, hotspot or exponential")
		}
		set("distribution", d)
	case "minscanlength":
		return r.whole(p, 1, func(n int) { set("scan-length-min", strconv.Itoa(n)) })
	case "maxscanlength":
		return r.whole(p, 1, func(n int) { set("scan-length-max", strconv.Itoa(n)) })
	case "scanlengthdistribution":
		if p.value != "uniform" && p.value != "zipfian" {
			return p.want("uniform or zipfian")
		}
		set("scan-lengths", p.value)
	case "hotspotdatafraction":
		return r.chooserParam(p, "hotspot", "hot-data")
	case "hotspotopnfraction":
		return r.chooserParam(p, "hotspot", "hot-ops")
	case "exponential.percentile":
		return r.chooserParam(p, "exponential", "percentile")
	case "exponential.frac":
		return r.chooserParam(p, "exponential", "fraction")
	case "fieldcount", "fieldlength":
		return r.whole(p, 1, func(int) {}) // multiplied in finish
	case "fieldlengthdistribution":
		if p.value != "constant" {
			return p.want("constant: every row here has the same weight")
		}
	case "insertstart":
		if p.value != "0" {
			return p.want("0: the rows at the start are numbered from 0")
		}
	case "insertcount":
		if p.value != r.seen["recordcount"].value {
			return p.want("the recordcount: the database is loaded whole")
		}
	default:
		return r.otherProperty(p)
	}
	return nil
}

// otherProperty deals with the shares, what has no effect, and the unknown.
func (r *ycsbReader) otherProperty(p property) error {
	for _, s := range ycsbShares {
		if s.property == p.name {
			if x, err := strconv.ParseFloat(p.value, 64); err != nil || !(x >= 0 && x <= 1) {
				return p.want("numbers from 0 to 1")
			}
			return nil // completed in finish
		}
	}
	why, ok := ycsbNoEffect[p.name]
	if !ok {
		return fmt.Errorf("unknown property %q, its value is %q: allowed are those of YCSB's core workload", p.name, p.value)
	}
	r.note(p, p.name+" has no effect: "+why)
	return nil
}

func (r *ycsbReader) whole(p property, least int, use func(int)) error {
	n, err := strconv.Atoi(p.value)
	if err != nil || n < least {
		return p.want("whole numbers from " + strconv.Itoa(least))
	}
	use(n)
	return nil
}

// chooserParam takes a property that is a parameter of a distribution.
func (r *ycsbReader) chooserParam(p property, chooser, param string) error {
	info, err := rng.FindChooser(chooser)
	if err != nil {
		return err
	}
	for _, d := range info.Params {
		if d.Name != param {
			continue
		}
		x, err := strconv.ParseFloat(p.value, 64)
		if err != nil || d.Check(x) != nil {
			return p.want("numbers in " + d.Range())
		}
		r.file.Params[param] = strconv.FormatFloat(x, 'g', -1, 64)
		return nil
	}
	panic("workloads: distribution " + chooser + " has no parameter " + param)
}

// finish fills in what several properties make together, and YCSB's defaults.
// With an error it returns the line to blame.
func (r *ycsbReader) finish() (line int, err error) {
	var proportion [len(shares{})]float64
	sum := 0.0
	for _, s := range ycsbShares {
		x := s.value
		if p, ok := r.seen[s.property]; ok {
			x, _ = strconv.ParseFloat(p.value, 64)
			line = p.line
		}
		proportion[s.kind] = x
		sum += x
	}
	if sum == 0 {
		return line, fmt.Errorf("all proportions are 0: want one above")
	}
	for _, s := range ycsbShares {
		if s.kind != txnproto.Read {
			// YCSB takes the proportions as weights, so they need not sum to 1.
			// The reads are what the others leave.
			r.file.Params[s.kind.String()] = strconv.FormatFloat(proportion[s.kind]/sum, 'g', -1, 64)
		}
	}
	if _, ok := r.seen["recordcount"]; !ok {
		r.note(property{}, "recordcount is not set: the number of keys is the default one")
	}
	slices.SortStableFunc(r.file.Notes, func(a, b Note) int { return a.Line - b.Line })
	r.byDefault("distribution", "uniform")
	r.byDefault("scan-length-max", "1000")
	bytes := r.wholeOr("fieldcount", 10) * r.wholeOr("fieldlength", 100)
	if most := 1 << 20; bytes < 1 || bytes > most {
		p := r.seen["fieldlength"]
		return max(p.line, r.seen["fieldcount"].line), fmt.Errorf("fieldcount times fieldlength is %d: allowed are 1 to %d bytes", bytes, most)
	}
	r.file.Params["value-bytes"] = strconv.Itoa(bytes)
	return 0, nil
}

func (r *ycsbReader) byDefault(name, value string) {
	if _, ok := r.file.Params[name]; !ok {
		r.file.Params[name] = value
	}
}

// wholeOr returns the property's value, checked before, or the default.
func (r *ycsbReader) wholeOr(name string, otherwise int) int {
	if p, ok := r.seen[name]; ok {
		n, err := strconv.Atoi(p.value)
		if err == nil && n <= 1<<30 {
			return n
		}
		return 1 << 30
	}
	return otherwise
}

// property is one line of a property file.
type property struct {
	name, value string
	line        int
}

func (p property) want(allowed string) error {
	return fmt.Errorf("%s is %q, allowed are %s", p.name, p.value, allowed)
}

// parseProperties reads Java's property format: name and value separated by =,
// : or blanks; # and ! begin a comment line; a backslash at the end of a line
// continues it, elsewhere it escapes the next character. The line of a property
// is the one it begins in.
func parseProperties(text string) ([]property, error) {
	var props []property
	lines := strings.Split(strings.ReplaceAll(text, "\r\n", "\n"), "\n")
	for i := 0; i < len(lines); i++ {
		line := strings.TrimLeft(lines[i], " \t\f")
		if line == "" || line[0] == '#' || line[0] == '!' {
			continue
		}
		p := property{line: i + 1}
		for continued(line) && i+1 < len(lines) {
			i++
			line = line[:len(line)-1] + strings.TrimLeft(lines[i], " \t\f")
		}
		var err error
		if p.name, p.value, err = splitProperty(line); err != nil {
			return nil, fmt.Errorf("%d: %w", p.line, err)
		}
		props = append(props, p)
	}
	return props, nil
}

// continued reports whether line ends with a backslash that is not escaped itself.
func continued(line string) bool {
	return (len(line)-len(strings.TrimRight(line, `\`)))%2 == 1
}

func splitProperty(line string) (name, value string, err error) {
	i := 0
	for ; i < len(line) && !strings.ContainsRune("=: \t\f", rune(line[i])); i++ {
		if line[i] == '\\' {
			i++
		}
	}
	i = min(i, len(line))
	rest := strings.TrimLeft(line[i:], " \t\f")
	if rest != "" && (rest[0] == '=' || rest[0] == ':') {
		rest = rest[1:]
	}
	name, err = unescape(line[:i])
	if err != nil {
		return "", "", err
	}
	// Java keeps blanks at the end of a value; no property of YCSB's has any.
	value, err = unescape(strings.TrimSpace(rest))
	if name == "" && err == nil {
		err = fmt.Errorf("%q: want NAME=VALUE", line)
	}
	return name, value, err
}

func unescape(s string) (string, error) {
	if !strings.Contains(s, `\`) {
		return s, nil
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		i++
		switch s[i] {
		case 't':
			b.WriteByte('\t')
		case 'n':
			b.WriteByte('\n')
		case 'r':
			b.WriteByte('\r')
		case 'f':
			b.WriteByte('\f')
		case 'u':
			if i+4 >= len(s) {
				return "", fmt.Errorf(`%q: \u wants four hexadecimal digits`, s)
			}
			code, err := strconv.ParseUint(s[i+1:i+5], 16, 16)
			if err != nil {
				return "", fmt.Errorf(`%q: \u wants four hexadecimal digits`, s)
			}
			b.WriteRune(rune(code))
			i += 4
		default:
			b.WriteByte(s[i])
		}
	}
	return b.String(), nil
}
