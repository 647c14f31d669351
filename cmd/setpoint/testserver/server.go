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
	// HeldIdle is how long it stays at least while it holds clusters: who uses their ports alone is not seen.
	HeldIdle = time.Hour
	// clustersMax and marksMax bound what one server, and one cluster, holds. Go tests of all packages share a server: 16 packages of
	// 16 parallel tests each have a cluster and a template's.
	clustersMax = 1000
	marksMax    = 1000
	// startsMax is how many clusters start at once: the others wait.
	startsMax = 4
	// bodyMax is the largest request, in bytes.
	bodyMax = 64 << 10
	// headerTimeout is how long a client may take to say what it asks.
	headerTimeout = 10 * time.Second
)

// errGone refuses what is asked of a cluster that has ended meanwhile.
var errGone = notFound("the cluster has ended: it was deleted, or its session has ended")

// errEnded refuses everything once nobody has used the server for a while.
var errEnded = refusal{http.StatusServiceUnavailable, "the server ends: start another one"}

// Config is a server.
type Config struct {
	// Idle is how long it stays when it has no session and no request; 0: DefaultIdle. While it holds clusters it is at least HeldIdle.
	Idle time.Duration
}

// Server holds clusters for tests. Its lock is above those of its clusters.
type Server struct {
	ctx      context.Context // clusters live as long as it
	idle     time.Duration
	mu       sync.Mutex
	clusters map[string]*cluster
	// places are taken by clusters that start; starts has a token of each that starts now.
	places   int
	starts   chan struct{}
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
	s := &Server{
		ctx: ctx, idle: config.Idle, clusters: map[string]*cluster{}, sessions: map[string]bool{},
		starts: make(chan struct{}, startsMax), ended: make(chan struct{}),
	}
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
			s.timer.Reset(s.patience())
		}
	}
}

// patience is how long nobody may ask for anything. The lock is held.
func (s *Server) patience() time.Duration {
	if len(s.clusters) > 0 {
		return max(s.idle, HeldIdle)
	}
	return s.idle
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

// starter starts a cluster, which lives as long as ctx.
type starter func(ctx context.Context) (*setpoint.Cluster, error)

// hold keeps a cluster that start makes, for a session or for all.
func (s *Server) hold(ctx context.Context, session string, nodes int, start starter) (string, error) {
	if err := s.takePlace(session); err != nil {
		return "", err
	}
	c, err := s.ready(ctx, session, nodes, start)
	if err != nil {
		s.leavePlace()
		return "", err
	}
	id, err := s.keep(c)
	if err != nil {
		return "", errors.Join(err, c.stop())
	}
	return id, nil
}

// ready returns a cluster that start made when it serves. Who asks may give up before.
func (s *Server) ready(ctx context.Context, session string, nodes int, start starter) (*cluster, error) {
	started, err := s.start(ctx, start)
	if err != nil {
		return nil, asked(err)
	}
	c := newCluster(s.ctx, started, session, nodes)
	if err := started.Ready(ctx); err != nil {
		return nil, errors.Join(err, c.stop())
	}
	return c, nil
}

// start starts a cluster when it is its turn, unless ctx ends before.
func (s *Server) start(ctx context.Context, start starter) (*setpoint.Cluster, error) {
	select {
	case s.starts <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-s.ctx.Done():
		return nil, errEnded
	}
	defer func() { <-s.starts }()
	return start(s.ctx)
}

// takePlace counts a cluster before it starts, so that no more start than may be held.
func (s *Server) takePlace(session string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.clusters)+s.places >= clustersMax {
		return refusal{http.StatusTooManyRequests, fmt.Sprintf("there are %d clusters, the most that one server holds: delete those that are done", clustersMax)}
	}
	err := s.refuses(session)
	if err == nil {
		s.places++
	}
	return err
}

func (s *Server) leavePlace() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places--
}

// keep names the cluster, which is in the place that was taken for it, if its session is still there.
func (s *Server) keep(c *cluster) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.places--
	if err := s.refuses(c.session); err != nil {
		return "", err
	}
	id := s.name("cluster-")
	s.clusters[id] = c
	return id, nil
}

// refuses says why no cluster is taken for the session. The lock is held.
func (s *Server) refuses(session string) error {
	switch {
	case s.over:
		return errEnded
	case session != "" && !s.sessions[session]:
		return notFound("there is no session %q: it has ended, and what it made with it", session)
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
