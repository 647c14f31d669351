package demo

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

// Broken is the version that never becomes healthy.
const Broken = "broken"

// Limits of the server.
const (
	shutdownTimeMax   = 5 * time.Second
	headerReadTimeMax = 10 * time.Second
	exitDelay         = 50 * time.Millisecond // lets the answer leave before the process does
)

// Server is the demo server.
type Server struct {
	Version string
	// PodName is what / answers with; the host name is the pod's name.
	PodName string
	Log     io.Writer
	// Exit ends the process; tests put something gentler here.
	Exit func(code int)
}

// Main runs the server with the arguments after "demo" and returns the process's exit code.
func Main(args []string) int {
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	version := flags.String("version", "v1", "the version to report; \"broken\" is never healthy")
	listen := flags.String("listen", ":8080", "address to listen on")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	name, err := os.Hostname()
	if err != nil {
		name = "unknown"
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	server := &Server{Version: *version, PodName: name, Log: os.Stdout, Exit: os.Exit}
	listener, err := net.Listen("tcp", *listen)
	if err == nil {
		err = server.Run(ctx, listener)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		return 1
	}
	return 0
}

// Run serves until ctx ends, then lets running requests finish.
func (s *Server) Run(ctx context.Context, listener net.Listener) error {
	server := &http.Server{Handler: s.Handler(), ReadHeaderTimeout: headerReadTimeMax}
	s.logf("demo %s started: pod %s, listening on %s", s.Version, s.PodName, listener.Addr())
	stopped := make(chan error, 1)
	stop := context.AfterFunc(ctx, func() {
		s.logf("demo %s stopping", s.Version)
		limit, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeMax)
		defer cancel()
		stopped <- server.Shutdown(limit)
	})
	err := server.Serve(listener)
	if !errors.Is(err, http.ErrServerClosed) {
		stop()
		return err
	}
	return <-stopped
}

// Handler serves /, /healthz and /exit, and logs each request.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/", s.hello)
	mux.HandleFunc("/healthz", s.healthz)
	mux.HandleFunc("/exit", s.exit)
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.logf("%s %s from %s", req.Method, req.URL.RequestURI(), req.RemoteAddr)
		mux.ServeHTTP(w, req)
	})
}

func (s *Server) hello(w http.ResponseWriter, _ *http.Request) {
	fmt.Fprintf(w, "%s %s\n", s.PodName, s.Version)
}

func (s *Server) healthz(w http.ResponseWriter, _ *http.Request) {
	if s.Version == Broken {
		http.Error(w, "broken on purpose", http.StatusServiceUnavailable)
		return
	}
	fmt.Fprintln(w, "ok")
}

func (s *Server) exit(w http.ResponseWriter, req *http.Request) {
	code, err := strconv.Atoi(req.URL.Query().Get("code"))
	if err != nil || code < 0 || code > 255 {
		http.Error(w, "code must be 0..255", http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "exiting with code %d\n", code)
	time.AfterFunc(exitDelay, func() {
		s.logf("exit %d on request", code)
		s.Exit(code)
	})
}

func (s *Server) logf(format string, args ...any) { fmt.Fprintf(s.Log, format+"\n", args...) }
