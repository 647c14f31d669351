package clusterlife

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// fileName is where the pin lies below an agent's data directory.
	fileName = "pki/life"
	// answerMaxBytes bounds what is read of a refusal, and of the file.
	answerMaxBytes = 4 << 10
	// tellInterval is how often servers of another life are told of.
	tellInterval = time.Minute
)

// ErrOther says that a server is of another life of the cluster than this node, or knows of none yet. Nothing of the request
// was read there, so it may be sent to another server.
var ErrOther = errors.New("a server of another life of the cluster")

// Pin is the life of the cluster that a node belongs to. Its methods may be called from any goroutine.
type Pin struct {
	path   string
	write  WriteFile
	logger *slog.Logger

	mu   sync.Mutex
	life string // "" until a server has told one
	told time.Time
}

// WriteFile replaces a file whole or not at all, durably.
type WriteFile func(path string, data []byte) error

// Open reads the pin of an agent's data directory, if there is one.
func Open(dataDir string, write WriteFile, logger *slog.Logger) (*Pin, error) {
	p := &Pin{path: filepath.Join(dataDir, fileName), write: write, logger: logger}
	text, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if p.life = strings.TrimSpace(string(text)); err == nil && (p.life == "" || len(p.life) > nameBytesMax) {
		err = errors.New("it does not name one life: remove it if the servers of --servers are this node's cluster")
	}
	if err != nil {
		return nil, fmt.Errorf("the life of the cluster, %s: %w", p.path, err)
	}
	return p, nil
}

// Life is the one pinned, "" if there is none yet.
func (p *Pin) Life() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.life
}

// Through returns a transport that sends requests for the pinned life only: the error of one that went elsewhere wraps
// ErrOther. A nil Pin pins nothing.
func (p *Pin) Through(next http.RoundTripper) http.RoundTripper {
	if p == nil {
		return next
	}
	return &transport{next, p}
}

type transport struct {
	http.RoundTripper
	pin *Pin
}

// RoundTrip implements http.RoundTripper.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	pinned := t.pin.Life()
	asked := pinned
	if asked == "" {
		asked = unknown
	}
	r = r.Clone(r.Context())
	r.Header.Set(Header, asked)
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	life := response.Header.Get(Header)
	if life != "" && response.StatusCode == http.StatusMisdirectedRequest {
		return nil, t.pin.refused(r.URL.Host, response)
	}
	if life != "" && life != pinned && len(life) <= nameBytesMax && !t.pin.follow(pinned, life) {
		_ = response.Body.Close() // no ErrOther: that server has read the request
		return nil, fmt.Errorf("%s answers for the life %s of the cluster, another server came first with %s", r.URL.Host, life, t.pin.Life())
	}
	return response, nil
}

// CloseIdleConnections is what http.Client.CloseIdleConnections calls.
func (t *transport) CloseIdleConnections() {
	if closer, ok := t.RoundTripper.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

func (p *Pin) refused(server string, response *http.Response) error {
	defer response.Body.Close()
	var status metav1.Status
	text, err := io.ReadAll(io.LimitReader(response.Body, answerMaxBytes))
	if err != nil || json.Unmarshal(text, &status) != nil || status.Message == "" {
		status.Message = response.Status
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.told) > tellInterval {
		p.told = time.Now()
		p.logger.Warn("a server is of another life of the cluster than this node: its pods go on, and other servers are asked. If the node is "+
			"to follow that server, remove "+p.path+" and restart the agent: pods that the server does not know end then",
			"server", server, "says", status.Message)
	}
	return fmt.Errorf("%w: %s: %s", ErrOther, server, status.Message)
}

// follow pins the life that a server has, which comes of the one before, if there was one, and reports whether that is pinned now.
func (p *Pin) follow(before, life string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.life != before {
		return p.life == life // another answer came first
	}
	if before != "" {
		p.logger.Warn("the cluster was restored or recovered: this node follows it into its next life", "life", life, "before", before)
	}
	p.life = life
	if err := p.save(); err != nil {
		p.logger.Warn("after a restart this agent may take another cluster's servers for its own", "err", err)
	}
	return true
}

func (p *Pin) save() error {
	if err := os.MkdirAll(filepath.Dir(p.path), 0o700); err != nil {
		return err
	}
	return p.write(p.path, []byte(p.life+"\n"))
}
