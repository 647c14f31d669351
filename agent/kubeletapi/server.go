package kubeletapi

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/agent/cri"
	"github.com/setpoint-io/setpoint/agent/podconfig"
)

// headerTimeout bounds a client that connects and says nothing.
const headerTimeout = 10 * time.Second

// Pods finds the pods of this node.
type Pods interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
	Pods() []*corev1.Pod
}

// Config of a server; all fields but TLS and Logger are required.
type Config struct {
	NodeName string
	Runtime  cri.Runtime
	Pods     Pods
	Dirs     podconfig.Dirs
	// RuntimeName prefixes container ids in statuses.
	RuntimeName string
	Version     string
	// TLS must demand client certificates. Nil serves plain HTTP, for tests.
	TLS    *tls.Config
	Logger *slog.Logger
}

// Run serves on listener until ctx ends, and closes it.
func Run(ctx context.Context, listener net.Listener, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := newServer(cfg)
	httpServer := &http.Server{
		Handler: s.handler(), ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ErrorLog:    log.New(io.Discard, "", 0), // refused handshakes are the network's noise
	}
	if cfg.TLS != nil {
		listener = tls.NewListener(listener, http1Only(cfg.TLS))
	}
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { s.sample(ctx) })
	children.Go(func() {
		<-ctx.Done()
		_ = httpServer.Close()
	})
	err := httpServer.Serve(listener)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// http1Only: HTTP/2 connections cannot be upgraded to streams.
func http1Only(c *tls.Config) *tls.Config {
	c = c.Clone()
	c.NextProtos = []string{"http/1.1"}
	return c
}

type server struct {
	Config
	samples samples
}

func newServer(cfg Config) *server { return &server{Config: cfg} }

// handler routes as the kubelet does.
func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, verb := range []string{"GET ", "POST "} { // WebSocket and SPDY clients
		mux.HandleFunc(verb+"/exec/{namespace}/{pod}/{container}", s.exec)
		mux.HandleFunc(verb+"/exec/{namespace}/{pod}/{uid}/{container}", s.exec)
		mux.HandleFunc(verb+"/attach/{namespace}/{pod}/{container}", s.attach)
		mux.HandleFunc(verb+"/attach/{namespace}/{pod}/{uid}/{container}", s.attach)
		mux.HandleFunc(verb+"/portForward/{namespace}/{pod}", s.portForward)
		mux.HandleFunc(verb+"/portForward/{namespace}/{pod}/{uid}", s.portForward)
	}
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	return mux
}

func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	if _, err := s.Runtime.Status(r.Context(), false); err != nil {
		http.Error(w, "container runtime is down: "+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

func (s *server) pods(w http.ResponseWriter, _ *http.Request) {
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}, Items: []corev1.Pod{}}
	for _, p := range s.Pods.Pods() {
		list.Items = append(list.Items, *p)
	}
	writeJSON(w, list)
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
}
