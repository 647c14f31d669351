package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// startPause makes the namespaces that config asks for, if any, and returns the process that holds them. This process stays outside
// of the PID and user namespaces: it has the host's files and every capability, and a container that may trace would have them too.
func startPause(config *Config, ready *os.File) (int, error) {
	if config.Pause == nil {
		return 0, nil
	}
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
	defer reports.Close()
	attr := pauseNamespaces(config.Users)
	group, err := config.Cgroup.ForkInto(attr) // this process may come there later
	if err != nil {
		return 0, err
	}
	defer group.Close()
	pid, err := syscall.ForkExec(SelfExecutable, []string{PauseName}, &syscall.ProcAttr{
		Env:   []string{"GOMAXPROCS=1"},
		Files: []uintptr{null.Fd(), null.Fd(), null.Fd(), specReader.Fd(), childReports.Fd()},
		Sys:   attr,
	})
	childReports.Close()
	if err != nil {
		return 0, fmt.Errorf("fork: %w", err)
	}
	if config.Users != nil {
		if err := tell(ready, pid); err != nil {
			return 0, err
		}
	}
	if err := json.NewEncoder(specWriter).Encode(config.Pause); err != nil {
		return 0, err
	}
	report, _, err := boot.ReadReport(reports)
	switch {
	case err != nil:
		return 0, err
	case report.Error != "":
		return 0, errors.New(report.Error)
	case config.Users == nil:
		return pid, nil
	}
	config.Users.Holder = pid
	return pid, joinPod(pid)
}

func pauseNamespaces(users *boot.Users) *syscall.SysProcAttr {
	if users == nil {
		return &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS}
	}
	return UserNamespaces(users)
}

// UserNamespaces makes a process user 0 of a user namespace, which all its other namespaces belong to.
func UserNamespaces(users *boot.Users) *syscall.SysProcAttr {
	ids := []syscall.SysProcIDMap{{HostID: int(users.First), Size: int(users.Length)}}
	return &syscall.SysProcAttr{
		Cloneflags:  unix.CLONE_NEWUSER | podNamespaces | unix.CLONE_NEWPID | unix.CLONE_NEWNS,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true, Credential: &syscall.Credential{},
	}
}

// podNamespaces are those that all containers of a pod share.
const podNamespaces = unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// joinPod puts this thread, which all containers are forked from, into the namespaces of the pause process.
func joinPod(pause int) error {
	target, err := unix.PidfdOpen(pause, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", pause, err)
	}
	defer unix.Close(target)
	if err := unix.Setns(target, podNamespaces); err != nil {
		return fmt.Errorf("join the pod's namespaces: %w", err)
	}
	return nil
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
