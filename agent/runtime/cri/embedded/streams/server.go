package streams

import (
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming"
)

// headerTimeMax is how long a client may take for the head of its request.
const headerTimeMax = 10 * time.Second

// ErrClosed says that the server was closed.
var ErrClosed = errors.New("runtime is closed")

// Server serves streams. mu guards what is below it.
type Server struct {
	runtime streaming.Runtime
	logger  *slog.Logger
	serving sync.WaitGroup

	mu     sync.Mutex
	closed bool
	urls   streaming.Server
	http   *http.Server
}

// New serves nothing yet.
func New(runtime streaming.Runtime, logger *slog.Logger) *Server {
	return &Server{runtime: runtime, logger: logger}
}

// URLs makes URLs of streams. The first call opens the port.
func (s *Server) URLs() (streaming.Server, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ErrClosed
	}
	if s.urls == nil {
		if err := s.start(); err != nil {
			return nil, err
		}
	}
	return s.urls, nil
}

func (s *Server) start() error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	config := streaming.DefaultConfig
	config.Addr = listener.Addr().String()
	config.BaseURL = &url.URL{Scheme: "http", Host: config.Addr}
	handler, err := streaming.NewServer(config, s.runtime)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	// Served by us, not by its Start, which would rewrite the base URL while requests read it.
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeMax}
	s.urls, s.http = handler, server
	s.serving.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.logger.Error("streaming server", "err", err)
		}
	})
	return nil
}

// Close ends what is served, and waits for it.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	server := s.http
	s.mu.Unlock()
	if server == nil {
		return nil
	}
	err := server.Close()
	s.serving.Wait()
	return err
}
