package testclient

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// returnLimit is how long a program may take to return once its context has ended.
const returnLimit = 10 * time.Second

// Runnable is a program under test; controller-runtime's Manager is one.
type Runnable interface {
	// Start runs until ctx ends.
	Start(ctx context.Context) error
}

// RunnableFunc makes a function a Runnable.
type RunnableFunc func(ctx context.Context) error

// Start implements Runnable.
func (f RunnableFunc) Start(ctx context.Context) error { return f(ctx) }

// Programs are those under test that run.
type Programs struct {
	mu  sync.Mutex
	all []*Program
}

// Program is a Runnable that runs.
type Program struct {
	runnable Runnable
	where    string
	cancel   context.CancelFunc
	done     chan error
}

// Run runs a program until Stop; where is the line at which it was given.
func (p *Programs) Run(ctx context.Context, r Runnable, where string) *Program {
	ctx, cancel := context.WithCancel(ctx)
	one := &Program{runnable: r, where: where, cancel: cancel, done: make(chan error, 1)}
	go func() { one.done <- r.Start(ctx) }()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, one)
	return one
}

// Any reports whether one was run since the last Stop.
func (p *Programs) Any() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.all) > 0
}

// Stop ends all of them.
func (p *Programs) Stop() error {
	p.mu.Lock()
	all := p.all
	p.all = nil
	p.mu.Unlock()
	var errs []error
	for _, one := range all {
		errs = append(errs, one.Stop())
	}
	return errors.Join(errs...)
}

// Stop ends the program and says how it ended, once.
func (p *Program) Stop() error {
	p.cancel()
	select {
	case err := <-p.done:
		p.done <- nil
		if err != nil && !errors.Is(err, context.Canceled) {
			return fmt.Errorf("the program given to Run at %s failed: %w", p.where, err)
		}
		return nil
	case <-time.After(returnLimit):
		return fmt.Errorf("the program given to Run at %s has not returned %v after its context ended: let its Start return then", p.where, returnLimit)
	}
}

// AwaitElected waits for a Manager, which says by a channel that its controllers run, and for its webhooks, nil if there are none.
// waitsFor says what its caches wait for.
func (p *Program) AwaitElected(timeout time.Duration, hooks *WebhookServer, waitsFor func() string) error {
	if elects, ok := p.runnable.(interface{ Elected() <-chan struct{} }); ok {
		select {
		case <-elects.Elected():
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("the program given to Run ended at once: %w%s", errOrNothing(err), advise(err, waitsFor))
		case <-time.After(timeout):
			return fmt.Errorf("the manager given to Run has not started its controllers after %v%s", timeout, waitsFor())
		}
	}
	if hooks == nil {
		return nil
	}
	return hooks.await()
}

func errOrNothing(err error) error {
	if err == nil {
		return errors.New("without an error")
	}
	return err
}
