package probe

import (
	"context"
	"errors"
	"time"
)

const (
	// timeMax bounds a probe, attemptTimeout each wait for an answer. What is not answered is tried attemptsMax times.
	timeMax        = 20 * time.Second
	attemptTimeout = 400 * time.Millisecond
	attemptsMax    = 3
)

// errNoBridge says that the probe has not got as far as to a firewall.
var errNoBridge = errors.New("the bridge of the pods does not answer")

// state is what is known of a way.
type state int

const (
	unknown state = iota
	passes
	blocked
)

// finding is what a probe has found. port is what was blocked of the way in.
type finding struct {
	input, forwarding state
	port              Target
}

// over keeps what an earlier probe has found where this one has found nothing out.
func (f finding) over(before finding) finding {
	if f.input == unknown {
		f.input, f.port = before.input, before.port
	}
	if f.forwarding == unknown {
		f.forwarding = before.forwarding
	}
	return f
}

// probe looks at both ways once.
func (c *Config) probe(ctx context.Context) (found finding, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeMax)
	defer cancel()
	place, giveBack, err := c.Lend()
	if err != nil {
		return found, err
	}
	defer giveBack()
	if err := Remove(); err != nil {
		return found, err
	}
	pod, err := openPod(place)
	if err != nil {
		return found, err
	}
	defer pod.close()
	outside, err := openOutside()
	if err != nil {
		return found, err
	}
	defer outside.close()
	if found.input, found.port = c.in(ctx, pod); !pod.sees(place.Gateway) {
		return finding{}, errNoBridge
	}
	found.forwarding = through(ctx, pod, outside)
	return found, ctx.Err()
}

// in asks the targets from the pod's place. The first that is blocked counts.
func (c *Config) in(ctx context.Context, pod *room) (found state, port Target) {
	question := questionFor(c.Domain)
	for _, t := range c.Targets() {
		ask := func() error { return t.ask(ctx, question) }
		switch compare(func() error { return within(pod, ask) }, ask) {
		case blocked:
			return blocked, t
		case passes:
			found = passes
		}
	}
	return found, port
}

// through sends from the pod's place to the outside and back.
func through(ctx context.Context, pod, outside *room) state {
	echo, err := listen(outside)
	if err != nil {
		return unknown
	}
	defer echo.Close()
	ask := func() error { return echo.ask(ctx) }
	return compare(func() error { return within(pod, ask) }, ask)
}

// compare finds a way blocked if the machine itself is answered each time, and pods never.
func compare(pods, machine func() error) state {
	for range attemptsMax {
		if pods() == nil {
			return passes
		}
		if machine() != nil {
			return unknown
		}
	}
	return blocked
}
