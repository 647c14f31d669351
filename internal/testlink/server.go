package testlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	// startLimit is how long a server may take until it answers, and lockLimit how long others wait for who starts it.
	startLimit = time.Minute
	lockLimit  = 2 * time.Minute
	// startPause is between two looks.
	startPause = 10 * time.Millisecond
	// startsMax bounds how often a server is started that finds another one just ending.
	startsMax = 3
)

// server is the one of a binary.
type server struct {
	binary, socket, lock, log string
}

func serverOf(folder, binary string) (server, error) {
	key, err := identity(binary)
	if err != nil {
		return server{}, err
	}
	path := filepath.Join(folder, key)
	return server{binary: binary, socket: path + ".sock", lock: path + ".start", log: path + ".log"}, nil
}

// session begins one, and starts the server if none answers.
func (s server) session(ctx context.Context) (*Session, error) {
	session, err := open(s.socket, s.log)
	if !errors.Is(err, errAway) {
		return session, err
	}
	unlock, err := s.lockStart(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	for range startsMax {
		session, err = open(s.socket, s.log) // somebody else may have started it
		if !errors.Is(err, errAway) {
			return session, err
		}
		if err = s.start(ctx); err == nil {
			session, err = open(s.socket, s.log)
		}
		if err == nil {
			return session, nil
		}
	}
	return nil, err
}

// lockStart keeps others from starting the server.
func (s server) lockStart(ctx context.Context) (unlock func(), err error) {
	file, err := os.OpenFile(s.lock, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for deadline := time.Now().Add(lockLimit); ; {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) || time.Now().After(deadline) {
			_ = file.Close()
			return nil, fmt.Errorf("another test has been starting the test server for %v: %s is its log: %w", lockLimit, s.log, err)
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, ctx.Err()
		case <-time.After(startPause):
		}
	}
}

// start starts the server and returns when it answers. It has nothing of the test's process: not its output, for whose end `go test`
// waits, its terminal, its folder or its settings. A pipe that it holds says when it ends, so that no goroutine has to wait for it.
func (s server) start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	alive, held, err := os.Pipe()
	if err != nil {
		return err
	}
	defer alive.Close()
	cmd := exec.Command(s.binary, "testserver", "--socket", s.socket)
	cmd.Dir, cmd.Env = "/", environment()
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = log, log, []*os.File{held}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	held.Close()
	if err != nil {
		return fmt.Errorf("the test server cannot be started: %w", err)
	}
	if err := s.awaitAnswer(ctx, alive); err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its log says why
		return err
	}
	return cmd.Process.Release()
}

// awaitAnswer waits until something answers at the socket. alive ends with the process.
func (s server) awaitAnswer(ctx context.Context, alive *os.File) error {
	for deadline := time.Now().Add(startLimit); ctx.Err() == nil; {
		if conn, err := net.Dial("unix", s.socket); err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the test server does not answer within %v: %s is its log", startLimit, s.log)
		}
		if err := alive.SetReadDeadline(time.Now().Add(startPause)); err != nil {
			return err
		}
		if _, err := alive.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			text, _ := os.ReadFile(s.log)
			return fmt.Errorf("%s testserver ended at once: %s", s.binary, lastLine(string(text)))
		}
	}
	return ctx.Err()
}

// environment is what any test would give the server, so that it does not matter who starts it.
func environment() (kept []string) {
	for _, name := range []string{"HOME", "PATH", "TMPDIR", "USER"} {
		if value, set := os.LookupEnv(name); set {
			kept = append(kept, name+"="+value)
		}
	}
	return kept
}
