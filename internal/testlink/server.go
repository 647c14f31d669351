package testlink

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	// startLimit is how long a server may take until it answers.
	startLimit = time.Minute
	// startsMax bounds how often a server is started that finds another one just ending.
	startsMax = 3
	// lockLimit is how long others wait for who starts it, who may take startsMax times startLimit.
	lockLimit = startsMax*startLimit + time.Minute
	// answersAlready is what a server says that finds another one, perhaps just ending.
	answersAlready = "a test server answers at"
)

// server is the one of a binary. path is what the names of its files begin with.
type server struct {
	binary, path, socket, lock string
}

func serverOf(folder, binary string) (server, error) {
	key, err := identity(binary)
	return serverIn(folder, key, binary), err
}

func serverIn(folder, key, binary string) server {
	path := filepath.Join(folder, key)
	return server{binary: binary, path: path, socket: path + ".sock", lock: path + ".start"}
}

func (s server) dial() (net.Conn, error) { return net.DialTimeout("unix", s.socket, answerLimit) }

// session begins one, and starts the server if none answers.
func (s server) session(ctx context.Context) (*Session, error) {
	session, err := s.open()
	if !errors.Is(err, errAway) {
		return session, err
	}
	unlock, err := lock(ctx, s.lock, lockLimit)
	if errors.Is(err, errHeld) {
		return nil, fmt.Errorf("another test has been starting the test server for %v: the newest %s-*%s is its log: %w", lockLimit, s.path, logSuffix, err)
	}
	if err != nil {
		return nil, err
	}
	defer unlock()
	tidy(filepath.Dir(s.path), time.Now())
	return s.startLocked(ctx)
}

// startLocked starts the server unless somebody else has. The start lock is held.
func (s server) startLocked(ctx context.Context) (session *Session, err error) {
	for range startsMax {
		session, err = s.open()
		if !errors.Is(err, errAway) {
			return session, err
		}
		if err = s.start(ctx); err == nil {
			session, err = s.open()
		}
		if err == nil || !errors.Is(err, errAway) {
			return session, err
		}
	}
	return nil, err
}

// start starts the server and returns when it answers. It has nothing of the test's process: not its output, for whose end `go test`
// waits, its terminal, its folder or its settings. A pipe that it holds says when it ends, so that no goroutine has to wait for it.
func (s server) start(ctx context.Context) error {
	s.dropLogs()
	log, err := os.OpenFile(s.path+"-new"+logSuffix, os.O_CREATE|os.O_TRUNC|os.O_APPEND|os.O_WRONLY, 0o600)
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
	named := s.logOf(cmd.Process.Pid)
	if err = os.Rename(log.Name(), named); err == nil {
		err = s.awaitAnswer(ctx, alive, named)
	}
	if err != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // its log says why
		return err
	}
	return cmd.Process.Release()
}

// awaitAnswer waits until something answers at the socket. alive ends with the process.
func (s server) awaitAnswer(ctx context.Context, alive *os.File, log string) error {
	for deadline := time.Now().Add(startLimit); ctx.Err() == nil; {
		if conn, err := net.Dial("unix", s.socket); err == nil {
			return conn.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the test server does not answer within %v: %s is its log", startLimit, log)
		}
		if err := alive.SetReadDeadline(time.Now().Add(pollPause)); err != nil {
			return err
		}
		if _, err := alive.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
			return s.endedAtOnce(log)
		}
	}
	return ctx.Err()
}

// endedAtOnce is what the server said last. One that found another is worth another try.
func (s server) endedAtOnce(log string) error {
	text, _ := os.ReadFile(log)
	said := lastSentence(string(text))
	err := fmt.Errorf("%s testserver ended at once: %s", s.binary, said)
	if strings.Contains(said, answersAlready) {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	return err
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
