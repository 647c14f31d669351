package session

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb"
	"github.com/setpoint-io/setpoint/agent/node/session/sessionpb/sessionpbconnect"
)

const (
	// messageLimitBytes bounds a message of an agent.
	messageLimitBytes = 4 << 10
	// answerLimitBytes bounds one of a server: ServersMax of the longest names, and where they gossip.
	answerLimitBytes = 16 << 10
	// ServersMax is how many servers an agent is told of; more voters than that are left out.
	ServersMax = 16
)

// ServiceConfig is the server's side of sessions.
type ServiceConfig struct {
	Table *Table
	// Led ends while this server has no leader; nil: it always has one.
	Led func() context.Context
	// Node names the node that calls, by its certificate; false for anybody else.
	Node func(ctx context.Context) (name string, ok bool)
	// GossipAddresses are where the servers gossip, for the agents; nil: nowhere.
	GossipAddresses func() []string
	// Servers are where the servers serve, host:port, for the agents; nil: they are not told.
	Servers func() []string
	// Ring are the keys of gossip that the agent of a node is to hold, and what they are called; nil: it gets none now. They are told to
	// agents that hold others. Nil: nobody is told.
	Ring func(node string) (*Ring, RingHeld)
	// Authorities are the certificates that the agent of a node is to believe, in PEM, and their hashes, the one that signs first; none: it
	// is told none now. They are told to agents that hold others. Nil: nobody is told.
	Authorities func(node string) (pem []byte, hashes []string)
	Logger      *slog.Logger
}

// Service holds the sessions of agents.
type Service struct {
	config ServiceConfig

	mu     sync.Mutex
	ending error // why all sessions end; nil while they are welcome
	held   map[*stream]struct{}
}

// stream is one session's connection: what it takes to wake its reader.
type stream struct {
	controller *http.ResponseController
	// node and ring are what its agent has said last; node is "" before that. The Service's mu guards them.
	node string
	ring RingHeld
	// authorities are the hashes of those that it believes; told: it was told others since.
	authorities []string
	told        bool
	// garbled: it has said what none says.
	garbled bool
}

// streamKey finds the stream in a request's context.
type streamKey struct{}

// NewService makes the service; its Run must run.
func NewService(config ServiceConfig) *Service {
	if config.Led == nil {
		config.Led = context.Background
	}
	return &Service{config: config, held: map[*stream]struct{}{}}
}

// Handler returns the service and the path prefix to mount it at. It needs HTTP/2.
func (s *Service) Handler() (prefix string, handler http.Handler) {
	prefix, inner := sessionpbconnect.NewSessionServiceHandler(s, connect.WithReadMaxBytes(messageLimitBytes))
	return prefix, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		st := &stream{controller: http.NewResponseController(w)}
		if s.add(st) != nil {
			http.Error(w, "hold the session elsewhere", http.StatusServiceUnavailable)
			return
		}
		defer s.remove(st)
		inner.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), streamKey{}, st)))
	})
}

// Run sends agents elsewhere when ctx ends, and while this server has no leader.
func (s *Service) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		led := s.config.Led()
		if led.Err() == nil {
			s.welcome(nil)
			select {
			case <-ctx.Done():
			case <-led.Done():
			}
			continue
		}
		s.welcome(ErrNoLeader)
		pause(ctx, sweepInterval, nil) // nobody tells when there is a leader again
	}
	s.welcome(ErrStopping)
	return nil
}

// welcome ends all sessions for a reason, or lets them in again.
func (s *Service) welcome(ending error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ending != nil && s.ending == nil {
		level := slog.LevelDebug
		if len(s.held) > 0 {
			level = slog.LevelInfo
		}
		s.config.Logger.Log(context.Background(), level, "sessions are sent elsewhere", "reason", ending.Error(), "sessions", len(s.held))
	}
	s.ending = ending
	if ending == nil {
		return
	}
	for st := range s.held {
		st.wake(time.Unix(1, 0))
	}
}

// wake makes the reader of the stream give up at a time.
func (st *stream) wake(at time.Time) { _ = st.controller.SetReadDeadline(at) } // without it TCP ends the stream, later

func (s *Service) add(st *stream) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ending == nil {
		s.held[st] = struct{}{}
	}
	return s.ending
}

func (s *Service) remove(st *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, st)
}

// Held is the number of sessions with this server.
func (s *Service) Held() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.held)
}

func (s *Service) reason() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ending
}

// Keep implements sessionpbconnect.SessionServiceHandler: one session.
func (s *Service) Keep(ctx context.Context, messages *connect.BidiStream[sessionpb.KeepRequest, sessionpb.KeepResponse]) error {
	node, ok := s.config.Node(ctx)
	if !ok {
		return connect.NewError(connect.CodePermissionDenied, ErrNotNode)
	}
	st, _ := ctx.Value(streamKey{}).(*stream)
	st.wake(time.Now().Add(pingGrace))
	first, err := messages.Receive()
	if err != nil {
		return s.leave(err)
	}
	r, err := s.config.Table.open(node, first.GetInstance(), first.GetCounter())
	if err != nil {
		return connect.NewError(connect.CodeResourceExhausted, err)
	}
	s.config.Logger.Debug("session opened", "node", node)
	s.note(st, node, first)
	how, err := s.hold(node, r, st, messages)
	s.config.Table.end(node, r, how)
	s.config.Logger.Debug("session ended", "node", node, "clean", how == closed, "err", err)
	return err
}

// hold answers pings until the session ends, and says how it did.
func (s *Service) hold(
	node string,
	r record,
	st *stream,
	messages *connect.BidiStream[sessionpb.KeepRequest, sessionpb.KeepResponse],
) (phase, error) {
	for {
		st.wake(time.Now().Add(pingGrace))
		if reason := s.reason(); reason != nil {
			return broken, s.leave(reason) // wake may have undone that of welcome
		}
		if err := messages.Send(s.answer(st)); err != nil {
			return broken, err
		}
		message, err := messages.Receive()
		switch {
		case err != nil:
			return broken, s.leave(err)
		case message.GetGoodbye():
			return closed, nil
		case !s.config.Table.ping(node, r):
			return broken, connect.NewError(connect.CodeAborted, errExpired)
		}
		s.note(st, node, message)
	}
}

func (s *Service) answer(st *stream) *sessionpb.KeepResponse {
	answer := &sessionpb.KeepResponse{
		DeadlineMilliseconds: pingGrace.Milliseconds(), GossipRing: s.ringFor(st), AuthoritiesPem: s.authoritiesFor(st),
	}
	if s.config.GossipAddresses != nil {
		answer.GossipAddresses = s.config.GossipAddresses()
	}
	if s.config.Servers != nil {
		servers := s.config.Servers()
		answer.Servers = servers[:min(len(servers), ServersMax)]
	}
	return answer
}

// leave is what the agent is told when its session ends here.
func (s *Service) leave(err error) error {
	if reason := s.reason(); reason != nil {
		return connect.NewError(connect.CodeUnavailable, reason)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return connect.NewError(connect.CodeUnavailable, err)
}
