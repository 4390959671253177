// Package reports computes and prints what a run is measured by.
//
//	clients, hosts ── records ──> Collector ── Finish ──> Result ──> Table, JSON, CSV
//	                                  └── digest of everything that happened
//
// A Collector is fed from the event loop while the run goes on. It keeps no
// record of a request: histograms, counters and a bounded list of the worst, so
// that its memory does not grow with the run, and it allocates nothing per
// record. A Result holds every number of the report once, under the name it has
// in JSON: times are whole nanoseconds and end in _ns; ratios lie between 0 and
// 1 unless they say otherwise. All of it is virtual, and equal for equal runs,
// but for Result.Wall, which is there only when asked for.
package reports
