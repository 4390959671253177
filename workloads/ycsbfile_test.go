package workloads

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestYCSBFiles(t *testing.T) {
	for _, c := range []struct {
		path string
		want YCSBFile
	}{
		{"testdata/workload-a.properties", YCSBFile{
			Params: map[string]string{
				"ops": "1", "keys": "1000", "update": "0.5", "insert": "0", "scan": "0", "rmw": "0",
				"distribution": "scrambled-zipfian", "scan-length-max": "1000", "value-bytes": "1000",
			},
			Requests: 5000,
			Notes:    []Note{{6, "readallfields has no effect: a row is read whole"}},
		}},
		{"testdata/scans.properties", YCSBFile{
			Params: map[string]string{
				"ops": "1", "keys": "200000", "update": "0", "insert": "0.05", "scan": "0.95", "rmw": "0",
				"distribution": "hotspot", "hot-data": "0.1", "hot-ops": "0.75",
				"scan-length-max": "100", "scan-lengths": "zipfian", "value-bytes": "1000",
			},
			Requests: 1000, Clients: 16, Rate: 500,
			Notes: []Note{
				{5, "target is the rate at which requests arrive, whether or not the earlier ones are done; YCSB holds its threads back to it"},
				{16, "maxscanlength was set in line 15; the later value counts"},
				{20, "insertorder has no effect: keys are spread over the shards by the cluster's placement"},
				{21, "measurementtype has no effect: metrics are the report's"},
			},
		}},
	} {
		got, err := LoadYCSB(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, *got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
		mustNew(t, "ycsb", got.Params, 4)
	}
}

func TestYCSBDefaults(t *testing.T) {
	got, err := ParseYCSB("empty", "")
	if err != nil {
		t.Fatal(err)
	}
	w := mustNew(t, "ycsb", got.Params, 1).(*ycsb)
	if s := w.mix.classes[0].shares.String(); s != "read=0.95,update=0.05" {
		t.Errorf("the shares are %s", s)
	}
	if len(got.Notes) != 1 || got.Notes[0].Line != 0 {
		t.Errorf("notes %v, want one on the missing recordcount", got.Notes)
	}
	// Proportions are weights.
	got, err = ParseYCSB("weights", "recordcount=10\nreadproportion=0.3\nupdateproportion=0.1\nscanproportion=0.1\n")
	if err != nil {
		t.Fatal(err)
	}
	w = mustNew(t, "ycsb", got.Params, 1).(*ycsb)
	if s := w.mix.classes[0].shares.String(); s != "read=0.6,update=0.2,scan=0.2" {
		t.Errorf("the shares are %s", s)
	}
}

func TestYCSBFileErrors(t *testing.T) {
	for text, want := range map[string]string{
		"recordcount=10\nrecordcuont=5":             `f:2: unknown property "recordcuont", its value is "5"`,
		"recordcount=many":                          `f:1: recordcount is "many", allowed are whole numbers from 1`,
		"recordcount=0":                             `f:1: recordcount is "0"`,
		"\n\nreadproportion=1.5":                    `f:3: readproportion is "1.5", allowed are numbers from 0 to 1`,
		"readproportion=0\nupdateproportion=0":      `f:2: all proportions are 0`,
		"requestdistribution=sequential":            `f:1: requestdistribution is "sequential", allowed are uniform, zipfian,`,
		"workload=site.ycsb.workloads.RestWorkload": `f:1: workload is "site.ycsb.workloads.RestWorkload", allowed are`,
		"fieldlengthdistribution=zipfian":           `allowed are constant`,
		"fieldcount=2000\nfieldlength=1000":         `f:2: fieldcount times fieldlength is 2000000`,
		"hotspotdatafraction=0":                     `f:1: hotspotdatafraction is "0", allowed are numbers in (0, 1]`,
		"exponential.percentile=100":                `allowed are numbers in (0, 100)`,
		"insertstart=5":                             `f:1: insertstart is "5"`,
		"recordcount=10\ninsertcount=5":             `f:2: insertcount is "5"`,
		"scanlengthdistribution=pareto":             `allowed are uniform or zipfian`,
		"#c\n=5":                                    `f:2: "=5": want NAME=VALUE`,
		"a=\\u12":                                   `f:1: "\\u12": \u wants four hexadecimal digits`,
		"x = 1 \\\n  2\ntarget=-1":                  `f:1: unknown property "x", its value is "1 2"`,
	} {
		if _, err := ParseYCSB("f", text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := LoadYCSB("testdata/none.properties"); err == nil || !strings.Contains(err.Error(), "none.properties") {
		t.Errorf("a file that is not there: error %v", err)
	}
}
