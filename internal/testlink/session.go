package testlink

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"
)

const (
	// answerLimit is how long a server may take to begin a session.
	answerLimit = 10 * time.Second
	// goneLimit is how long after another connection that of the session may seem to be there, when the server is killed.
	goneLimit = 200 * time.Millisecond
)

// errAway: no server is there, or it is about to end.
var errAway = errors.New("no test server answers")

// Session is a connection that stays open as long as the process. What is made for it ends with it.
type Session struct {
	// Name is what clusters are made for.
	Name string
	// socket, log and pid are of the server; pid is 0 where it is not known.
	socket, log string
	pid         int
	conn        net.Conn
}

// open begins a session. No goroutine holds it: nobody reads until somebody wants to know whether it is over.
func (s server) open() (*Session, error) {
	conn, err := s.dial()
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errAway, err)
	}
	pid := peer(conn)
	session := &Session{socket: s.socket, log: s.logOf(pid), pid: pid, conn: conn}
	if err := session.begin(); err != nil {
		conn.Close()
		return nil, err
	}
	return session, nil
}

func (s *Session) begin() error {
	if err := s.conn.SetDeadline(time.Now().Add(answerLimit)); err != nil {
		return err
	}
	request, err := http.NewRequest(http.MethodGet, origin+"/session", nil)
	if err != nil {
		return err
	}
	if err := request.Write(s.conn); err != nil {
		return fmt.Errorf("%w: %w", errAway, err)
	}
	response, err := http.ReadResponse(bufio.NewReader(s.conn), request)
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the test server at %s does not answer within %v: %s, and run the test again, it starts another one", s.socket, answerLimit, s.howToEnd())
	case err != nil:
		return fmt.Errorf("%w: %w", errAway, err)
	case response.StatusCode == http.StatusServiceUnavailable:
		return errAway
	case response.StatusCode != http.StatusOK:
		return fmt.Errorf("the test server at %s begins no session: %s", s.socket, response.Status)
	}
	var answer Answer
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil { // the body goes on until the end
		return fmt.Errorf("%w: %w", errAway, err)
	}
	s.Name = answer.Session
	return s.conn.SetDeadline(time.Time{})
}

// howToEnd says how to end the server.
func (s *Session) howToEnd() string {
	if s.pid == 0 {
		return "end the process setpoint testserver --socket " + s.socket
	}
	return fmt.Sprintf("end it (kill -9 %d)", s.pid)
}

// Gone reports whether the server has ended. It takes a moment if not, at most until ctx ends.
func (s *Session) Gone(ctx context.Context) bool {
	for deadline := time.After(goneLimit); !s.Over(); {
		select {
		case <-ctx.Done():
			return false
		case <-deadline:
			return false
		case <-time.After(pollPause):
		}
	}
	return true
}

// Explain says that the server is gone, if that is why something failed.
func (s *Session) Explain(ctx context.Context, err error) error {
	if _, answered := errors.AsType[refusal](err); err == nil || answered || !s.Gone(ctx) {
		return err
	}
	return fmt.Errorf("the test server that held this cluster has ended, because it was killed or crashed (%s is its log): run the test again, it starts another one", s.log)
}

// Over is Gone for who has seen no failure: it does not wait. It sets no deadline, which others that look meanwhile would share.
func (s *Session) Over() bool {
	raw, err := s.conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return true
	}
	ended := false
	err = raw.Control(func(fd uintptr) {
		n, err := 1, error(nil)
		for n > 0 && err == nil || errors.Is(err, syscall.EINTR) { // the end of the first answer may be there
			n, _, err = syscall.Recvfrom(int(fd), make([]byte, 64), syscall.MSG_DONTWAIT)
		}
		ended = !errors.Is(err, syscall.EAGAIN)
	})
	return ended || err != nil
}
