package setpointtest

import (
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// trial is a test whose failures are a result.
type trial struct {
	testing.TB
	mu   sync.Mutex
	ends []func()
	said []string
}

// run runs the body, and then what it left to the end, as the testing package does.
func (r *trial) run(body func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		body()
	}()
	<-done
	for last := r.lastEnd(); last != nil; last = r.lastEnd() {
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			last()
		}()
		<-ended
	}
}

// lastEnd takes out what was left to the end last, nil if nothing is.
func (r *trial) lastEnd() (last func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.ends); n > 0 {
		last, r.ends = r.ends[n-1], r.ends[:n-1]
	}
	return last
}

// Helper implements testing.TB.
func (r *trial) Helper() {}

// Cleanup implements testing.TB.
func (r *trial) Cleanup(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ends = append(r.ends, f)
}

// Failed implements testing.TB.
func (r *trial) Failed() bool { return len(r.failures()) > 0 }

// Log implements testing.TB; what is logged in a trial is not shown.
func (r *trial) Log(...any) {}

// Logf implements testing.TB.
func (r *trial) Logf(string, ...any) {}

// Errorf implements testing.TB.
func (r *trial) Errorf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.said = append(r.said, fmt.Sprintf(format, args...))
}

// Error implements testing.TB.
func (r *trial) Error(args ...any) { r.Errorf("%s", fmt.Sprint(args...)) }

// Fail implements testing.TB.
func (r *trial) Fail() { r.Errorf("the scenario failed") }

// FailNow implements testing.TB.
func (r *trial) FailNow() {
	r.Fail()
	runtime.Goexit()
}

// Fatalf implements testing.TB.
func (r *trial) Fatalf(format string, args ...any) {
	r.Errorf(format, args...)
	runtime.Goexit()
}

// Fatal implements testing.TB.
func (r *trial) Fatal(args ...any) { r.Fatalf("%s", fmt.Sprint(args...)) }

func (r *trial) failures() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.said)
}
