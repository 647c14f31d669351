package testserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint"
)

const (
	// Protocol is the version of the requests. It grows with each change that an older client would notice.
	Protocol = 1
	// DefaultIdle is how long the server stays when nobody uses it.
	DefaultIdle = time.Minute
	// clustersMax and marksMax bound what one server, and one cluster, holds.
	clustersMax = 200
	marksMax    = 1000
	// bodyMax is the largest request, in bytes.
	bodyMax = 64 << 10
	// headerTimeout is how long a client may take to say what it asks.
	headerTimeout = 10 * time.Second
)

var errEnded = errors.New("the server ends: start another one")

// Config is a server.
type Config struct {
	// Idle is how long it stays when it has no session and no request; 0: DefaultIdle.
	Idle time.Duration
}

// Server holds clusters for tests. Its lock is above those of its clusters.
type Server struct {
	ctx      context.Context // clusters live as long as it
	idle     time.Duration
	mu       sync.Mutex
	clusters map[string]*cluster
	sessions map[string]bool
	// last numbers clusters, sessions and marks.
	last int
	// uses are the requests and sessions that are open; timer runs while there are none.
	uses  int
	timer *time.Timer
	open  sync.WaitGroup // of the requests; none is added when it is over
	// ended is closed when nobody has used the server for too long.
	ended chan struct{}
	over  bool
}

// New returns a server whose clusters run until ctx ends, or Run returns.
func New(ctx context.Context, config Config) *Server {
	if config.Idle == 0 {
		config.Idle = DefaultIdle
	}
	s := &Server{ctx: ctx, idle: config.Idle, clusters: map[string]*cluster{}, sessions: map[string]bool{}, ended: make(chan struct{})}
	s.timer = time.AfterFunc(s.idle, s.expire)
	return s
}

// Run answers at the listener, which it closes, until ctx ends or nobody has used the server for a while.
func Run(ctx context.Context, listener net.Listener, config Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s := New(ctx, config)
	web := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- web.Serve(listener) }()
	var err error
	select {
	case <-ctx.Done():
	case <-s.ended:
	case err = <-served:
		served <- err
	}
	closed := web.Close()
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = ended
	}
	cancel()
	err = errors.Join(err, closed, s.Stop())
	s.open.Wait()
	return err
}

// Stop ends all clusters, and the server takes no more.
func (s *Server) Stop() error {
	s.mu.Lock()
	s.over = true
	s.timer.Stop()
	all := s.clusters
	s.clusters = map[string]*cluster{}
	s.mu.Unlock()
	var errs []error
	for _, c := range all {
		errs = append(errs, c.stop())
	}
	return errors.Join(errs...)
}

// Ended is closed when nobody has used the server for a while.
func (s *Server) Ended() <-chan struct{} { return s.ended }

// enter counts a use, until leave is called.
func (s *Server) enter() (leave func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return func() {}
	}
	s.uses++
	s.open.Add(1)
	s.timer.Stop()
	return func() {
		defer s.open.Done()
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.uses--; s.uses == 0 && !s.over {
			s.timer.Reset(s.idle)
		}
	}
}

func (s *Server) expire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.uses == 0 && !s.over {
		s.over = true
		close(s.ended)
	}
}

// name numbers what is made.
func (s *Server) name(prefix string) string {
	s.last++
	return fmt.Sprintf("%s%d", prefix, s.last)
}

// hold keeps a cluster that start makes, for a session or for all.
func (s *Server) hold(session string, start func() (*setpoint.Cluster, error)) (string, error) {
	if err := s.room(session); err != nil {
		return "", err
	}
	started, err := start()
	if err != nil {
		return "", badRequest("%v", err)
	}
	c := &cluster{current: started, session: session, marks: map[string]*setpoint.Image{}}
	if err := started.Ready(s.ctx); err != nil {
		return "", errors.Join(err, c.stop())
	}
	s.mu.Lock()
	if err := s.full(session); err != nil {
		s.mu.Unlock()
		return "", errors.Join(err, c.stop())
	}
	defer s.mu.Unlock()
	id := s.name("cluster-")
	s.clusters[id] = c
	return id, nil
}

func (s *Server) room(session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.full(session)
}

// full says why no cluster can be taken. The lock is held.
func (s *Server) full(session string) error {
	switch {
	case s.over:
		return errEnded
	case session != "" && !s.sessions[session]:
		return notFound("there is no session %q: it has ended, and what it made with it", session)
	case len(s.clusters) >= clustersMax:
		return refusal{http.StatusTooManyRequests, fmt.Sprintf("there are %d clusters, the most that one server holds: delete those that are done", clustersMax)}
	}
	return nil
}

// drop ends the clusters that match.
func (s *Server) drop(matches func(id string, c *cluster) bool) (dropped int, err error) {
	s.mu.Lock()
	var found []*cluster
	for id, c := range s.clusters {
		if matches(id, c) {
			found = append(found, c)
			delete(s.clusters, id)
		}
	}
	s.mu.Unlock()
	for _, c := range found {
		err = errors.Join(err, c.stop())
	}
	return len(found), err
}
