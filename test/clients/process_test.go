package clients

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// startTimeout bounds the start of a program, on a machine that does much else.
	startTimeout = 60 * time.Second
	// stopTimeout bounds an orderly end.
	stopTimeout = 30 * time.Second
)

// program is the path of a program that run.sh built: setpoint itself, or a client. A path is one of the machine's.
func program(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	if name == "setpoint" {
		return os.Getenv("SETPOINT")
	}
	return filepath.Join(os.Getenv("CLIENTS"), name)
}

// process is a program that runs beside the test.
type process struct {
	cmd    *exec.Cmd
	output *output
	ended  chan struct{}
	err    error // valid when ended is closed
}

// start runs a program until it has printed ready.
func start(dir, ready string, env []string, name string, args ...string) (*process, error) {
	p := &process{
		cmd:    exec.Command(program(name), args...),
		output: &output{awaited: ready, seen: make(chan struct{})},
		ended:  make(chan struct{}),
	}
	p.cmd.Dir = dir
	p.cmd.Env = append(os.Environ(), env...)
	p.cmd.Stdout, p.cmd.Stderr = p.output, p.output
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		p.err = p.cmd.Wait()
		close(p.ended)
	}()
	select {
	case <-p.output.seen:
		return p, nil
	case <-p.ended:
	case <-time.After(startTimeout):
		p.kill()
	}
	return nil, fmt.Errorf("%s did not say %q:\n%s", name, ready, p.output)
}

// mustStart is start for tests; the process is killed at their end.
func mustStart(t *testing.T, ready string, env []string, name string, args ...string) *process {
	t.Helper()
	p, err := start(t.TempDir(), ready, env, name, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("%s said:\n%s", name, p.output)
		}
	})
	return p
}

var errNotEnded = errors.New("did not end in time")

// stop ends the process in an orderly way.
func (p *process) stop() error {
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-p.ended:
		return p.err
	case <-time.After(stopTimeout):
		p.kill()
		return errNotEnded
	}
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

// output keeps what a process prints, and closes seen when awaited is in it.
type output struct {
	awaited string
	seen    chan struct{}

	mu   sync.Mutex
	text bytes.Buffer
	done bool
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(p)
	if !o.done && strings.Contains(o.text.String(), o.awaited) {
		o.done = true
		close(o.seen)
	}
	return len(p), nil
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}
