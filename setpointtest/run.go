package setpointtest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"
)

const (
	// returnLimit is how long a program may take to return once its context has ended.
	returnLimit = 10 * time.Second
	// listenLimit is how long a program may take to serve its webhooks.
	listenLimit = 10 * time.Second
)

// Runnable is a program under test; controller-runtime's Manager is one.
type Runnable interface {
	// Start runs until ctx ends.
	Start(ctx context.Context) error
}

// RunnableFunc makes a function a Runnable.
type RunnableFunc func(ctx context.Context) error

// Start implements Runnable.
func (f RunnableFunc) Start(ctx context.Context) error { return f(ctx) }

// program is a Runnable that runs.
type program struct {
	where  string
	cancel context.CancelFunc
	done   chan error
}

// Run runs a program until the test ends; an error that it returns before fails the test. For a Manager it returns
// when its controllers run, and, if the Config has Webhooks, when something serves them.
func (c *Cluster) Run(r Runnable) {
	c.t.Helper()
	c.alive()
	ctx, cancel := context.WithCancel(c.t.Context())
	p := &program{where: callerLine(), cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- r.Start(ctx) }()
	c.mu.Lock()
	c.running = append(c.running, p)
	c.mu.Unlock()
	c.t.Cleanup(func() { c.stopProgram(p) })
	c.awaitElected(r, p)
	c.awaitWebhooks()
}

// awaitElected waits for a Manager; it says by this channel that its controllers run.
func (c *Cluster) awaitElected(r Runnable, p *program) {
	c.t.Helper()
	elects, ok := r.(interface{ Elected() <-chan struct{} })
	if !ok {
		return
	}
	select {
	case <-elects.Elected():
	case err := <-p.done:
		p.done <- err
		c.t.Fatalf("setpointtest: the program given to Run ended at once: %v%s", errOrNothing(err), c.advise(err))
	case <-time.After(c.timeout):
		c.t.Fatalf("setpointtest: the manager given to Run has not started its controllers after %v%s", c.timeout, c.whatCachesWaitFor())
	}
}

func errOrNothing(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}

// awaitWebhooks waits until the port of the webhooks answers.
func (c *Cluster) awaitWebhooks() {
	c.t.Helper()
	if c.hooks == nil {
		return
	}
	address := net.JoinHostPort(c.hooks.Host, fmt.Sprint(c.hooks.Port))
	for deadline := time.Now().Add(listenLimit); ; time.Sleep(pollMin) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			return
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("setpointtest: nothing serves the webhooks of the Config at %s: give the manager webhook.NewServer with Host, Port and CertDir of WebhookServer()", address)
		}
	}
}

// stopProgram ends a program and says how it ended.
func (c *Cluster) stopProgram(p *program) {
	p.cancel()
	select {
	case err := <-p.done:
		if err != nil && !errors.Is(err, context.Canceled) {
			c.t.Errorf("setpointtest: the program given to Run at %s failed: %v", p.where, err)
		}
		p.done <- nil
	case <-time.After(returnLimit):
		c.t.Errorf("setpointtest: the program given to Run at %s has not returned %v after its context ended: let its Start return then", p.where, returnLimit)
	}
}

// callerLine is the line of the test that called the method which calls this.
func callerLine() string {
	_, file, line, ok := runtime.Caller(2)
	if !ok {
		return "an unknown line"
	}
	return fmt.Sprintf("%s:%d", file, line)
}
