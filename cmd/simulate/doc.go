// Command simulate is the command line of Interleave: one file a subcommand, and
// no logic of its own beyond flags, processes and files.
//
//	flags, spec file ── sim.Spec ── Expand ──> jobs ──> sim.Run, here or in worker
//	                                                    processes (the hidden
//	                                                    subcommand worker)
//	                 table, JSON, CSV <── reports <──── results, in order
//
// A run on Raft has its process to itself, so several runs go to workers: each
// reads a job as JSON from standard input and writes its progress and result as
// lines of JSON. History files appear under their names when they are complete.
package main
