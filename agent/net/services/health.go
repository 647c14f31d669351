package services

import (
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	healthHeaderTimeout = 5 * time.Second
	healthHeaderBytes   = 4 << 10
)

// health is what a load balancer is told: how many endpoints a Service has on this node.
type health struct {
	service types.NamespacedName
	local   int
}

// healthAnswers answers load balancers, one server for each port. Only run's goroutine calls its methods.
type healthAnswers struct {
	failed  func(types.NamespacedName, uint16, error)
	servers map[uint16]*healthServer
	// refused are the ports that could not be opened, so that it is said once.
	refused  map[uint16]bool
	children sync.WaitGroup
}

type healthServer struct {
	server *http.Server
	now    atomic.Pointer[health]
}

func newHealthAnswers(failed func(types.NamespacedName, uint16, error)) *healthAnswers {
	return &healthAnswers{failed: failed, servers: map[uint16]*healthServer{}, refused: map[uint16]bool{}}
}

// set makes the servers equal to wanted.
func (a *healthAnswers) set(wanted map[uint16]health) {
	for port, s := range a.servers {
		if _, ok := wanted[port]; !ok {
			_ = s.server.Close()
			delete(a.servers, port)
		}
	}
	for port := range a.refused {
		if _, ok := wanted[port]; !ok {
			delete(a.refused, port)
		}
	}
	for port, now := range wanted {
		if a.servers[port] == nil {
			a.open(port, now)
		}
		if s := a.servers[port]; s != nil {
			s.now.Store(&now)
		}
	}
}

func (a *healthAnswers) open(port uint16, now health) {
	listener, err := net.Listen("tcp4", net.JoinHostPort("", strconv.Itoa(int(port))))
	if err != nil {
		if !a.refused[port] && a.failed != nil {
			a.failed(now.service, port, err)
		}
		a.refused[port] = true
		return
	}
	delete(a.refused, port)
	s := &healthServer{}
	s.now.Store(&now)
	s.server = &http.Server{
		Handler: s, ReadHeaderTimeout: healthHeaderTimeout, IdleTimeout: healthHeaderTimeout, MaxHeaderBytes: healthHeaderBytes,
	}
	a.servers[port] = s
	a.children.Go(func() { _ = s.server.Serve(listener) })
}

func (a *healthAnswers) close() {
	a.set(nil)
	a.children.Wait()
}

// ServeHTTP answers as kube-proxy does: 200 if there are endpoints here, 503 if not.
func (s *healthServer) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	now := s.now.Load()
	var answer struct {
		Service struct {
			Namespace string `json:"namespace"`
			Name      string `json:"name"`
		} `json:"service"`
		LocalEndpoints      int  `json:"localEndpoints"`
		ServiceProxyHealthy bool `json:"serviceProxyHealthy"`
	}
	answer.Service.Namespace, answer.Service.Name = now.service.Namespace, now.service.Name
	answer.LocalEndpoints, answer.ServiceProxyHealthy = now.local, true
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("X-Load-Balancing-Endpoint-Weight", strconv.Itoa(now.local))
	if now.local == 0 {
		w.WriteHeader(http.StatusServiceUnavailable)
	}
	_ = json.NewEncoder(w).Encode(answer)
}
