package kubeletapi

import (
	"context"
	"time"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

const (
	// sampleEvery is how old a sample may be that is answered from, and so the shortest window of CPU rates: the runtime's own rates
	// depend on who asked last. Servers and Prometheus ask less often.
	sampleEvery = 10 * time.Second
	// sampleAgeMax is from what age a sample says nothing of how much is used now. Two are taken then, sampleFirst apart.
	sampleAgeMax = 2 * time.Minute
	sampleFirst  = time.Second
)

// procDir is where the machine tells what it uses.
const procDir = "/proc"

// sample is what was told at one time.
type sample struct {
	at  time.Time
	use reading
	// machine is nil while it cannot be read.
	machine *machineUse
}

// samples are the two latest. They are taken when somebody asks: on a node that nobody asks, reading what each of its pods uses would be
// a third of the agent's work.
type samples struct {
	seat      chan struct{} // of who asks, or takes one
	last, now sample
}

// latest are the two latest samples, the later one of now. They are empty if ctx ends first.
func (s *server) latest(ctx context.Context) (last, now sample) {
	all := &s.samples
	select {
	case all.seat <- struct{}{}:
		defer func() { <-all.seat }()
	case <-ctx.Done():
		return sample{}, sample{}
	}
	age := time.Since(all.now.at)
	if age > sampleAgeMax {
		s.sample(ctx)
		if !wait.For(ctx, sampleFirst) {
			all.last, all.now = sample{}, sample{} // one alone has no rate
		}
	}
	if age >= sampleEvery {
		s.sample(ctx)
	}
	return all.last, all.now
}

// sample takes one. Of a runtime that does not answer it is the former one; where ctx ends it is not taken.
func (s *server) sample(ctx context.Context) {
	all := &s.samples
	next := sample{at: time.Now(), use: all.now.use}
	if use, err := readUse(ctx, s.Runtime); err == nil {
		next.use = use
	}
	var err error
	if next.machine, err = readMachine(procDir, next.at); err != nil {
		s.Logger.Debug("the machine does not tell what it uses", "err", err)
	}
	if ctx.Err() == nil {
		all.last, all.now = all.now, next
	}
}
