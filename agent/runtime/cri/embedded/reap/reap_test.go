package reap

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// TestMain is the child too: it ends with its input, with the code of its argument.
func TestMain(m *testing.M) {
	if os.Getenv("REAP_CHILD") != "" {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(len(os.Args))
	}
	os.Exit(m.Run())
}

func child(t *testing.T) (command *exec.Cmd, end func()) {
	t.Helper()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	command = &exec.Cmd{Path: "/proc/self/exe", Args: []string{"child", "of", "three"}, Env: []string{"REAP_CHILD=1"}, Stdin: reader}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	return command, func() { writer.Close() }
}

func TestWait(t *testing.T) {
	for name, sooner := range map[string]bool{"it ends before": true, "it ends later": false} {
		t.Run(name, func(t *testing.T) {
			command, end := child(t)
			if sooner {
				end()
				awaitEnd(command.Process.Pid)
			}
			ended := make(chan error)
			go func() { ended <- Wait(command) }()
			end()
			failed, ok := errors.AsType[*exec.ExitError](<-ended)
			if !ok || failed.ExitCode() != 3 {
				t.Errorf("%v", failed)
			}
		})
	}
}

// TestNoThreadWaits: many children are waited for by few threads.
func TestNoThreadWaits(t *testing.T) {
	const children = 50
	var waiting sync.WaitGroup
	var all []func()
	before, begun := threads(t), make(chan struct{})
	for range children {
		command, end := child(t)
		all = append(all, end)
		waiting.Go(func() {
			begun <- struct{}{}
			_ = Wait(command)
		})
		<-begun
	}
	more := threads(t) - before
	for _, end := range all {
		end()
	}
	waiting.Wait()
	if more > children/2 {
		t.Errorf("%d threads more for %d children", more, children)
	}
}

func threads(t *testing.T) int {
	t.Helper()
	all, err := filepath.Glob("/proc/self/task/*")
	if err != nil {
		t.Fatal(err)
	}
	return len(all)
}
