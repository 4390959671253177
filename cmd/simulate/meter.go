package main

import (
	"io"
	"os"
	"sync"
	"time"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

const (
	meterDelay = time.Second // shorter work shows no progress
	meterSteps = 1000        // of one run
)

// meter shows how far several runs are, on a terminal only.
type meter struct {
	mu    sync.Mutex
	start time.Time
	w     io.Writer
	steps []int
	bar   *progressbar.ProgressBar
	off   bool
}

func newMeter(w io.Writer, runs int) *meter {
	f, ok := w.(*os.File)
	return &meter{start: time.Now(), w: w, steps: make([]int, runs), off: !ok || !term.IsTerminal(int(f.Fd()))}
}

// progress notes that run i has done so much of total.
func (m *meter) progress(i int, done, total int64) {
	if m.off || total <= 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.steps[i] = max(m.steps[i], int(float64(min(done, total))/float64(total)*meterSteps))
	if time.Since(m.start) < meterDelay {
		return
	}
	if m.bar == nil {
		m.bar = progressbar.NewOptions(len(m.steps)*meterSteps,
			progressbar.OptionSetWriter(m.w), progressbar.OptionSetDescription("simulating"),
			progressbar.OptionSetWidth(40), progressbar.OptionThrottle(100*time.Millisecond),
			progressbar.OptionClearOnFinish(), progressbar.OptionSetPredictTime(true))
	}
	sum := 0
	for _, s := range m.steps {
		sum += s
	}
	_ = m.bar.Set(sum)
}

// stop removes the bar.
func (m *meter) stop() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bar != nil {
		_ = m.bar.Clear()
	}
	m.off = true
}
