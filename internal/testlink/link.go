package testlink

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"sync"

	"github.com/setpoint-io/setpoint/internal/process"
)

// Link is a process's session, which all its tests share. The zero Link is that of the user's folder.
type Link struct {
	mu      sync.Mutex
	binary  string
	session *Session
}

// Session returns the process's session. It begins one if there is none, or the server of the former has ended.
func (l *Link) Session(ctx context.Context, say func(format string, args ...any)) (*Session, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.session != nil && !l.session.Over() {
		return l.session, nil
	}
	folder, err := Folder()
	if err != nil {
		return nil, err
	}
	if l.binary == "" {
		if l.binary, err = (Finder{Folder: folder, Say: say}).Binary(ctx); err != nil {
			return nil, err
		}
	}
	server, err := serverOf(folder, l.binary)
	if err != nil {
		return nil, err
	}
	session, err := server.session(ctx)
	if err != nil {
		return nil, err
	}
	if err := session.fits(ctx, l.binary); err != nil {
		session.conn.Close()
		return nil, err
	}
	l.session = session
	return session, nil
}

// fits refuses a server of another version. Who names a binary has chosen it, so that only its requests must be these.
func (s *Session) fits(ctx context.Context, binary string) error {
	answer, err := s.Ask(ctx, QuickLimit, http.MethodGet, "/version", nil)
	if err != nil {
		return err
	}
	chosen := os.Getenv(BinaryVariable) != ""
	if answer.Protocol == Protocol && (chosen || answer.Version == process.Version) {
		return nil
	}
	return fmt.Errorf("%s is setpoint %s with requests of version %d, and this test wants %s with version %d: take both from one version of %s",
		binary, answer.Version, answer.Protocol, process.Version, Protocol, modulePath)
}
