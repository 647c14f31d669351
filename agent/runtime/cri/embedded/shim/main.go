package shim

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
)

// ReadyFD receives an int32 when the shim listens: the number of its pause process, or 0. That of a pod with users of its own it
// receives once before: the pod's namespaces exist then.
const ReadyFD = 3

// server is the shim's whole state. mu guards containers, watchers, strays and booting; it is held across fork and
// registration, so that the reaper never meets an unknown child.
type server struct {
	log        *slog.Logger
	mu         sync.Mutex
	containers map[string]*container
	byPID      map[int]*container
	watchers   map[chan State]struct{}
	forks      chan func()
	done       chan struct{}
	// pause is the process that holds namespaces of the pod, 0 if there is none; users are the pod's own, nil if it has the host's.
	pause int
	users *boot.Users
	// strays are children that ended while a container was booting: one may be its main process, not yet announced.
	strays  map[int]syscall.WaitStatus
	booting int
}

// Main is the shim; its only argument is the sandbox directory. It returns the process's exit code.
func Main(args []string) int {
	if len(args) != 1 {
		fmt.Fprintln(os.Stderr, "usage: setpoint-shim SANDBOX-DIRECTORY")
		return 2
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serve(args[0], logger); err != nil {
		logger.Error("shim stopped", "err", err)
		return 1
	}
	return 0
}

func serve(dir string, logger *slog.Logger) error {
	// Children die with the thread that forked them (PDEATHSIG), so all forks happen on this one, which stays.
	runtime.LockOSThread()
	nameProcess(Name)
	if err := os.Chdir(dir); err != nil {
		return err
	}
	config, err := prepare()
	if err != nil {
		return err
	}
	if err := config.Cgroup.JoinWhole(); err != nil {
		return err
	}
	if config.Users == nil {
		err = config.Apply()
	} else {
		config.Pause.Settings = &config.PodSettings
	}
	if err != nil {
		return err
	}
	ready := os.NewFile(ReadyFD, "ready")
	defer ready.Close()
	pause, err := startPause(config, ready)
	if err != nil {
		return fmt.Errorf("pause process: %w", err)
	}
	// A relative name: socket paths are limited to 108 bytes, data directories are not.
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: SocketName, Net: "unix"})
	if err != nil {
		return err
	}
	defer listener.Close()
	s := &server{
		log:        logger,
		containers: map[string]*container{},
		byPID:      map[int]*container{},
		watchers:   map[chan State]struct{}{},
		forks:      make(chan func()),
		done:       make(chan struct{}),
		strays:     map[int]syscall.WaitStatus{},
		pause:      pause,
		users:      config.Users,
	}
	go s.reap()
	go s.accept(listener)
	if err := tell(ready, pause); err != nil {
		return err
	}
	s.forkLoop()
	return nil
}

func (s *server) forkLoop() {
	for {
		select {
		case fork := <-s.forks:
			fork()
		case <-s.done:
			return
		}
	}
}

// prepare makes this process a pod's anchor: orphans come here, signals meant for an agent in a terminal do not.
func prepare() (*Config, error) {
	// Caught and dropped, not ignored: an ignored signal would stay ignored in the containers.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return nil, fmt.Errorf("become subreaper: %w", err)
	}
	data, err := os.ReadFile(ConfigName)
	if err != nil {
		return nil, err
	}
	var config Config
	if err := json.Unmarshal(data, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", ConfigName, err)
	}
	return &config, nil
}

// tell sends the pause process's number, 0 if there is none.
func tell(ready *os.File, pause int) error {
	return binary.Write(ready, binary.NativeEndian, int32(pause))
}

// reap collects every child, containers and adopted orphans alike.
func (s *server) reap() {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGCHLD)
	for range signals {
		for s.reapOne() {
		}
	}
}

func (s *server) reapOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	var status syscall.WaitStatus
	pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
	if err == syscall.EINTR {
		return true
	}
	if err != nil || pid <= 0 {
		return false
	}
	s.noteEnd(pid, status)
	return true
}

// noteEnd takes the end of a child, container, pause or adopted orphan; the caller holds mu.
func (s *server) noteEnd(pid int, status syscall.WaitStatus) {
	c := s.byPID[pid]
	switch {
	case c != nil:
		delete(s.byPID, pid)
		c.status <- status
	case pid == s.pause: // and with it all containers
		s.log.Error("process 1 of the pod ended", "status", status)
		s.stop()
	case s.booting > 0:
		s.strays[pid] = status
	}
}

func (s *server) accept(listener *net.UnixListener) {
	for {
		conn, err := listener.AcceptUnix()
		if err != nil {
			s.log.Error("accept", "err", err)
			return
		}
		go s.handle(conn)
	}
}

func (s *server) handle(conn *net.UnixConn) {
	defer conn.Close()
	reader := bufio.NewReader(conn)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return // the client went away before asking
	}
	var req request
	if err := json.Unmarshal(line, &req); err != nil {
		reply(conn, nil, fmt.Errorf("bad request: %w", err))
		return
	}
	switch req.Op {
	case opStart:
		state, err := s.start(req.Start)
		reply(conn, state, err)
	case opWatch:
		s.watch(conn)
	case opShutdown:
		reply(conn, nil, s.shutdown())
	default:
		s.handleContainer(conn, reader, &req)
	}
}

func (s *server) handleContainer(conn *net.UnixConn, reader *bufio.Reader, req *request) {
	s.mu.Lock()
	c := s.containers[req.ID]
	s.mu.Unlock()
	if c == nil {
		reply(conn, nil, fmt.Errorf("container %q is not here", req.ID))
		return
	}
	switch req.Op {
	case opSignal:
		reply(conn, nil, s.signal(c, syscall.Signal(req.Signal)))
	case opReopen:
		reply(conn, nil, c.log.reopen())
	case opResize:
		reply(conn, nil, c.resize(req.Width, req.Height))
	case opAttach:
		reply(conn, nil, nil)
		c.attach(conn, reader)
	default:
		reply(conn, nil, fmt.Errorf("unknown operation %q", req.Op))
	}
}

func reply(conn net.Conn, state *State, err error) {
	answer := response{State: state}
	if err != nil {
		answer.Error = err.Error()
		if failed, ok := errors.AsType[*StartError](err); ok {
			answer.Code = failed.Code
		}
	}
	_ = json.NewEncoder(conn).Encode(answer) // a client that left does not need it
}

// shutdown refuses while a container runs: only an empty pod may lose its shim.
func (s *server) shutdown() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.byPID) > 0 {
		return fmt.Errorf("%d containers still run", len(s.byPID))
	}
	s.stop()
	return nil
}

// stop ends the shim; the caller holds mu.
func (s *server) stop() {
	select {
	case <-s.done:
	default:
		close(s.done)
	}
}
