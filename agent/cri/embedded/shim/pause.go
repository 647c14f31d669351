package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/cri/embedded/boot"
)

// startPause makes the PID namespace that a pod's containers share. This process stays outside of it: it has the host's files
// and every capability, and a container that may trace would have them too.
func startPause(spec *boot.PauseSpec) (int, error) {
	null, err := boot.OpenNull()
	if err != nil {
		return 0, err
	}
	defer null.Close()
	specReader, specWriter, err := os.Pipe()
	if err != nil {
		return 0, err
	}
	defer specReader.Close()
	defer specWriter.Close()
	reports, childReports, err := boot.NewReportSocket()
	if err != nil {
		return 0, err
	}
	defer unix.Close(reports)
	pid, err := syscall.ForkExec(SelfExecutable, []string{PauseName}, &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1"},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), specReader.Fd(), childReports.Fd()},
		Sys:   &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS},
	})
	childReports.Close()
	if err != nil {
		return 0, fmt.Errorf("fork: %w", err)
	}
	if err := json.NewEncoder(specWriter).Encode(spec); err != nil {
		return 0, err
	}
	report, _, err := boot.ReadReport(reports)
	if err == nil && report.Error != "" {
		err = errors.New(report.Error)
	}
	return pid, err
}

// sharedPID is the process whose PID namespace the container joins; 0 if none.
func (s *server) sharedPID(req *StartRequest) (int, error) {
	if !req.PodPID {
		return req.TargetPID, nil
	}
	if s.pause == 0 {
		return 0, errors.New("the pod has no PID namespace to share")
	}
	return s.pause, nil
}

// addBooting counts containers whose main process will be a child that nobody has announced; without any, strays are of no
// interest.
func (s *server) addBooting(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.booting += n; s.booting == 0 {
		clear(s.strays)
	}
}

// adopt makes a new child the container's main process, in place of the one that booted it.
func (s *server) adopt(c *container, pid int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byPID, c.pid)
	c.pid, c.state.PID = pid, pid
	if status, ended := s.strays[pid]; ended {
		delete(s.strays, pid)
		c.status <- status
		return
	}
	s.byPID[pid] = c
}
