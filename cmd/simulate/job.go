package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"interleave/reports"
	"interleave/sim"
)

// job is one run with where its files go, as it is given to a worker process.
type job struct {
	Spec    sim.RunSpec `json:"spec"`
	DataDir string      `json:"data-dir,omitempty"`
	History string      `json:"history,omitempty"`
	Trace   string      `json:"trace,omitempty"`
	Wall    bool        `json:"wall,omitempty"`
}

func newJob(r sim.RunSpec) job {
	return job{Spec: r, DataDir: r.DataDir, History: r.History}
}

// perform carries out a job in this process.
func (a *app) perform(ctx context.Context, j job, progress func(done, total int64)) (*reports.Result, error) {
	j.Spec.DataDir, j.Spec.History = j.DataDir, j.History
	opt := sim.Options{Progress: progress, Wall: j.Wall}
	var history, trace *newFile
	var err error
	if j.History != "" {
		if history, err = createFile(j.History); err != nil {
			return nil, err
		}
		defer history.discard()
		opt.History = history.w
	}
	if j.Trace != "" {
		if trace, err = createFile(j.Trace); err != nil {
			return nil, err
		}
		defer trace.discard()
		opt.Trace = trace.w
	}
	r, err := a.run(ctx, j.Spec, opt)
	switch {
	case errors.Is(err, sim.ErrInterrupted):
		return r, nil
	case err != nil:
		return nil, fmt.Errorf("%w (%s)", err, j.Spec.Command())
	}
	for _, f := range []*newFile{history, trace} {
		if f != nil {
			if err := f.commit(); err != nil {
				return nil, err
			}
		}
	}
	return r, nil
}

// newFile is a file that appears under its name when it is complete, or not at all.
type newFile struct {
	name string
	f    *os.File
	w    *bufio.Writer
}

// unfinished holds the files that a sudden end must remove.
var unfinished = struct {
	sync.Mutex
	files map[string]bool
}{files: map[string]bool{}}

func createFile(name string) (*newFile, error) {
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return nil, err
	}
	unfinished.Lock()
	unfinished.files[f.Name()] = true
	unfinished.Unlock()
	return &newFile{name, f, bufio.NewWriterSize(f, 1<<16)}, nil
}

func (n *newFile) commit() error {
	err := errors.Join(n.w.Flush(), n.f.Chmod(0o644), n.f.Close())
	if err == nil {
		err = os.Rename(n.f.Name(), n.name)
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", n.name, err)
	}
	n.forget()
	return nil
}

func (n *newFile) forget() {
	unfinished.Lock()
	delete(unfinished.files, n.f.Name())
	unfinished.Unlock()
	n.f = nil
}

// discard removes the file unless it was committed.
func (n *newFile) discard() {
	if n.f == nil {
		return
	}
	_ = n.f.Close()
	_ = os.Remove(n.f.Name())
	n.forget()
}

// discardUnfinished removes what runs that did not return have begun to write.
func discardUnfinished() {
	unfinished.Lock()
	defer unfinished.Unlock()
	for name := range unfinished.files { // order: all are removed
		_ = os.Remove(name)
	}
}
