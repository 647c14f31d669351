package shim

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// drainTimeMax bounds the wait for the end of output after the main process has ended: with a shared PID namespace a
// forgotten grandchild may hold the pipe open for ever.
const drainTimeMax = 2 * time.Second

// watchQueueMax is how many events a watcher may lag behind before it is cut off; it then reconnects and relists.
const watchQueueMax = 256

// StartError says why a container has no main process; Code is what a shell would have returned.
type StartError struct {
	Message string
	Code    int
}

func (e *StartError) Error() string { return e.Message }

// container is one child. status receives its wait status once; state is guarded by the server's mutex.
type container struct {
	request  *StartRequest
	pid      int // in our own PID namespace, for signals
	state    State
	status   chan syscall.WaitStatus
	log      *criLog
	streams  *fanOut
	drained  sync.WaitGroup
	terminal *os.File
	stdin    *os.File
	stdinMu  sync.Mutex
}

// start forks the container and returns when its command executes, or why it could not.
func (s *server) start(req *StartRequest) (*State, error) {
	log, err := openLog(req.LogPath)
	if err != nil {
		return nil, err
	}
	c := &container{request: req, status: make(chan syscall.WaitStatus, 1), log: log, streams: newFanOut()}
	c.state.ID = req.Spec.ID
	launch, err := newLaunch(req)
	if err != nil {
		return nil, err
	}
	if req.Spec.SharedPID, err = s.sharedPID(req); err != nil {
		launch.closeAll()
		return nil, err
	}
	if s.users != nil {
		req.Spec.Users, req.Spec.NewPID = s.users, req.NewPID
	}
	if req.Spec.ForksMain() {
		s.addBooting(1)
		defer s.addBooting(-1)
	}
	forked := make(chan error)
	s.forks <- func() { forked <- s.fork(c, launch) }
	err = <-forked
	launch.closeChildEnds()
	if err != nil {
		launch.closeOurEnds()
		return nil, err
	}
	if err := s.follow(c, launch); err != nil {
		s.abandon(c, launch)
		return nil, err
	}
	s.mu.Lock()
	c.state.StartedAt = time.Now()
	state := c.state
	s.publish(state)
	s.mu.Unlock()
	c.collect(launch)
	go s.finish(c)
	return &state, nil
}

func (s *server) fork(c *container, launch *launch) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.containers[c.state.ID] != nil {
		return fmt.Errorf("container %s was already started", c.state.ID)
	}
	var flags uintptr = unix.CLONE_NEWNS
	if c.request.NewPID && !c.request.Spec.NewPID {
		flags |= unix.CLONE_NEWPID
	}
	attr := &syscall.SysProcAttr{Cloneflags: flags}
	group, err := c.request.Spec.Cgroup.ForkInto(attr)
	if err != nil {
		return err
	}
	defer group.Close()
	pid, err := syscall.ForkExec(SelfExecutable, []string{InitName}, &syscall.ProcAttr{Dir: "/", Files: launch.childFiles(), Sys: attr})
	if err != nil {
		return fmt.Errorf("fork container: %w", err)
	}
	c.pid = pid
	s.byPID[pid] = c
	s.containers[c.state.ID] = c
	return nil
}

// follow hands over the spec and listens until the command executes.
func (s *server) follow(c *container, launch *launch) error {
	go launch.sendSpec(&c.request.Spec)
	unknown := c.request.Spec.ForksMain() // the main process is another than the one that boots
	for {
		report, terminal, err := boot.ReadReport(launch.reports)
		switch {
		case errors.Is(err, io.EOF) && (c.state.PID == 0 || unknown):
			return &StartError{Message: "container process ended before it reported", Code: 128}
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case report.Error != "":
			return &StartError{Message: report.Error, Code: report.Code}
		case terminal != nil:
			c.terminal = terminal
		case report.Forked != 0:
			s.adopt(c, report.Forked)
			unknown = false
			_, _ = launch.reports.Write([]byte{1}) // it may have been killed meanwhile
		case report.Identity != nil:
			c.state.Identity = report.Identity
		case report.PID != 0:
			c.state.PID = report.PID
		}
	}
}

// abandon forgets a container that never executed its command.
func (s *server) abandon(c *container, launch *launch) {
	_ = syscall.Kill(c.pid, syscall.SIGKILL) // it may have ended by itself
	<-c.status
	launch.closeOurEnds()
	c.log.close()
	s.mu.Lock()
	delete(s.containers, c.state.ID)
	s.mu.Unlock()
}

// collect copies output to the log and to attached clients.
func (c *container) collect(launch *launch) {
	launch.reports.Close()
	c.stdin = launch.stdin
	if c.terminal != nil {
		c.stdin = c.terminal
		launch.closeOutput()
		c.copyStream(c.terminal, "stdout", streamStdout)
		return
	}
	c.copyStream(launch.stdout, "stdout", streamStdout)
	c.copyStream(launch.stderr, "stderr", streamStderr)
}

func (c *container) copyStream(from *os.File, name string, stream byte) {
	c.drained.Go(func() {
		lines := &lineWriter{log: c.log, stream: name}
		buffer := make([]byte, 32<<10)
		for {
			n, err := from.Read(buffer)
			if n > 0 {
				_, _ = lines.Write(buffer[:n]) // never fails
				c.streams.send(stream, buffer[:n])
			}
			if err != nil { // EOF, or EIO from a terminal whose last process is gone
				break
			}
		}
		lines.flush()
		from.Close()
	})
}

// finish waits for the end, then drains, records, announces: in this order.
func (s *server) finish(c *container) {
	status := <-c.status
	exit := &Exit{Code: boot.ExitCode(status), FinishedAt: time.Now()}
	if status.Signaled() {
		exit.Signal = int(status.Signal())
	}
	c.drain()
	if err := writeExit(c.request.Dir, exit); err != nil {
		s.log.Error("record exit", "container", c.state.ID, "err", err)
	}
	c.streams.close()
	c.log.close()
	c.closeStdin()
	if c.request.PodPID && exit.Signal == int(syscall.SIGKILL) && s.endsSoon() {
		return // what is recorded is read when this process is gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	c.state.Exit = exit
	s.publish(c.state)
}

// pauseEndTimeMax is how long after the containers of its PID namespace process 1 of a pod is seen to have ended.
const pauseEndTimeMax = 100 * time.Millisecond

// endsSoon tells whether process 1 of the pod has ended: the kernel kills its containers then, before it says so. Whoever heard of
// such a container would start it again in a pod that is over.
func (s *server) endsSoon() bool {
	select {
	case <-s.done:
		return true
	case <-time.After(pauseEndTimeMax):
		return false
	}
}

func (c *container) drain() {
	drained := make(chan struct{})
	go func() { c.drained.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTimeMax):
	}
}

// writeExit is durable before it is visible.
func writeExit(dir string, exit *Exit) error {
	data, err := json.Marshal(exit)
	if err != nil {
		return err
	}
	temporary := filepath.Join(dir, ExitName+".tmp")
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, filepath.Join(dir, ExitName))
}

// publish tells the watchers; the caller holds mu. One that lags is cut off.
func (s *server) publish(state State) {
	for watcher := range s.watchers {
		select {
		case watcher <- state:
		default:
			delete(s.watchers, watcher)
			close(watcher)
		}
	}
}

// watch sends the present states and then every change, one per line, until the client leaves.
func (s *server) watch(conn net.Conn) {
	events := make(chan State, watchQueueMax)
	s.mu.Lock()
	for _, c := range s.containers {
		if c.state.PID != 0 && len(events) < watchQueueMax {
			events <- c.state
		}
	}
	s.watchers[events] = struct{}{}
	s.mu.Unlock()
	reply(conn, nil, nil)
	go func() {
		_, _ = io.Copy(io.Discard, conn) // ends when the client leaves
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.watchers[events]; ok {
			delete(s.watchers, events)
			close(events)
		}
	}()
	encoder := json.NewEncoder(conn)
	for state := range events {
		if encoder.Encode(state) != nil {
			return
		}
	}
}

// signal reaches only a child that has not been reaped, so never a stranger with a recycled number.
func (s *server) signal(c *container, signal syscall.Signal) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byPID[c.pid] != c {
		return nil
	}
	err := syscall.Kill(c.pid, signal)
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// ReadExit reads the exit recorded in a container's directory; fs.ErrNotExist while there is none.
func ReadExit(dir string) (*Exit, error) {
	data, err := os.ReadFile(filepath.Join(dir, ExitName))
	if err != nil {
		return nil, err
	}
	exit := &Exit{}
	if err := json.Unmarshal(data, exit); err != nil {
		return nil, fmt.Errorf("%s: %w", strings.TrimSuffix(ExitName, ".json"), err)
	}
	return exit, nil
}
