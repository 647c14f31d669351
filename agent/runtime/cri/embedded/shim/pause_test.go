package shim

import (
	"syscall"
	"testing"
)

// The main process of a container that shares a PID namespace may end before the process that forked it has said its number.
func TestMainProcessThatEndsUnannounced(t *testing.T) {
	s := &server{byPID: map[int]*container{}, strays: map[int]syscall.WaitStatus{}}
	s.addBooting(1)
	c := &container{pid: 10, status: make(chan syscall.WaitStatus, 1)}
	s.byPID[10] = c
	const ended = syscall.WaitStatus(3 << 8)
	s.noteEnd(11, ended)
	s.adopt(c, 11)
	select {
	case status := <-c.status:
		if status != ended {
			t.Errorf("status %v", status)
		}
	default:
		t.Error("the container's end is lost")
	}
	s.noteEnd(10, 0) // the process that booted it
	s.noteEnd(12, 0)
	if len(c.status) != 0 || len(s.byPID) != 0 {
		t.Errorf("another end: %d, %v", len(c.status), s.byPID)
	}
	s.addBooting(-1)
	s.noteEnd(13, 0)
	if len(s.strays) != 0 {
		t.Errorf("strays are kept: %v", s.strays)
	}
}
