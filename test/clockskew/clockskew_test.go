package clockskew

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// childEnv makes the test binary a process that tells the time when asked.
const childEnv = "CLOCKSKEW_CHILD"

func TestMain(m *testing.M) {
	if os.Getenv(childEnv) != "" {
		tellTime(os.Stdin, os.Stdout)
		return
	}
	os.Exit(m.Run())
}

// tellTime answers each line with the wall clock and what passed since the start, by
// the monotonic clock, both in nanoseconds.
func tellTime(in io.Reader, out io.Writer) {
	start := time.Now()
	for lines := bufio.NewScanner(in); lines.Scan(); {
		now := time.Now()
		fmt.Fprintln(out, now.UnixNano(), now.Sub(start).Nanoseconds())
	}
}

func TestTheWallClockOfOneProcessMoves(t *testing.T) {
	if os.Getuid() != 0 || runtime.GOARCH != "amd64" {
		t.Skip("writing another process's memory needs root; the code is for amd64")
	}
	child := startChild(t)
	for _, offset := range []time.Duration{0, time.Hour, -48 * time.Hour, 90 * 24 * time.Hour, 0} {
		_, before := child.ask(t)
		if err := Set(child.pid, offset); err != nil {
			t.Fatal(err)
		}
		earliest := time.Now().Add(offset)
		wall, after := child.ask(t)
		latest := time.Now().Add(offset)
		// The offset is added to whole seconds, so nothing else of the time changes.
		if wall.Before(earliest) || wall.After(latest) {
			t.Errorf("offset %v: the process has %v, wanted from %v to %v", offset, wall, earliest, latest)
		}
		if after < before || after-before > time.Since(child.started) {
			t.Errorf("offset %v: the monotonic clock went from %v to %v", offset, before, after)
		}
	}
}

type child struct {
	pid     int
	started time.Time
	in      io.Writer
	out     *bufio.Reader
}

func startChild(t *testing.T) *child {
	t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), childEnv+"=1")
	in, err := command.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c := &child{started: time.Now(), in: in, out: bufio.NewReader(out)}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := command.Wait(); err != nil {
			t.Error(err)
		}
	})
	c.pid = command.Process.Pid
	return c
}

func (c *child) ask(t *testing.T) (wall time.Time, passed time.Duration) {
	t.Helper()
	var wallNanos, passedNanos int64
	if _, err := fmt.Fprintln(c.in); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fscanln(c.out, &wallNanos, &passedNanos); err != nil {
		t.Fatal(err)
	}
	return time.Unix(0, wallNanos), time.Duration(passedNanos)
}
