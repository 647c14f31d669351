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
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/setpoint-io/setpoint/agent/api/kubeletapi/access"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/localvolume"
	"github.com/setpoint-io/setpoint/internal/poddial"
	"github.com/setpoint-io/setpoint/internal/profiles"
	"github.com/setpoint-io/setpoint/internal/shares"
	"github.com/setpoint-io/setpoint/internal/strangers"
)

const (
	// headerTimeout bounds a client that connects and says nothing.
	headerTimeout = 10 * time.Second
	// headerBytesMax is more than a token and what else a client says.
	headerBytesMax = 64 << 10
)

// ServersOnly says which paths no user may ask for: connections to pods' addresses, and volumes.
func ServersOnly(path string) bool {
	return strings.HasPrefix(path, poddial.Path) || path == localvolume.Endpoint || strings.HasPrefix(path, localvolume.Endpoint+"/")
}

// Pods finds the pods of this node.
type Pods interface {
	Pod(namespace, name string) (*corev1.Pod, bool)
	Pods() []*corev1.Pod
}

// LocalVolumes makes and removes the volumes of the class setpoint-local.
type LocalVolumes interface {
	Make(handle string, want localvolume.Volume) (localvolume.Volume, error)
	Remove(handle string, onlyEmpty bool) error
	List() ([]string, error)
}

// VolumeStats is how full the volumes of claims are. It answers at once.
type VolumeStats interface {
	// Of are the volumes of a pod.
	Of(pod types.UID) []stats.VolumeStats
	// All are the volumes of all pods, each claim once.
	All() []stats.VolumeStats
}

// Config of a server; all fields but NoProfiles, LocalVolumes, VolumeStats, Collectors, Layers, TLS and Logger are required.
type Config struct {
	NodeName string
	Runtime  cri.Runtime
	Pods     Pods
	Dirs     podconfig.Dirs
	// RuntimeName prefixes container ids in statuses.
	RuntimeName string
	// Configuration is the KubeletConfiguration in force; nil: an empty one.
	Configuration func() any
	// ProbeCounts are the results of probes; nil: there are none.
	ProbeCounts func() map[probes.Count]uint64
	Version     string
	// LocalVolumes are those on this node's disk; nil has none.
	LocalVolumes LocalVolumes
	// VolumeStats are those of volumes; nil tells of none.
	VolumeStats VolumeStats
	// Collectors are of other parts, for /metrics.
	Collectors []prometheus.Collector
	// QuotaPeriod is that of containers' CPU quotas; 0 is upstream's.
	QuotaPeriod time.Duration
	// Pages mounts what the process tells of itself, given the paths that are served. Nil: nothing.
	Pages func(mux Mux, paths []string)
	// NoProfiles leaves those of this process out.
	NoProfiles bool
	// Layers are those of this node's images; nil has none.
	Layers Layers
	// TLS must accept no other certificates of clients than servers' and nodes'. Nil serves plain HTTP, for tests.
	TLS *tls.Config
	// Guard decides who may ask; nil lets everybody, for tests.
	Guard  *access.Guard
	Logger *slog.Logger
}

// Run serves on listener until ctx ends, and closes it.
func Run(ctx context.Context, listener net.Listener, cfg Config) error {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	handler := admitted(newServer(cfg).handler())
	if cfg.Guard != nil {
		handler = cfg.Guard.Handler(handler)
	}
	httpServer := &http.Server{
		Handler: handler, MaxHeaderBytes: headerBytesMax, ReadHeaderTimeout: headerTimeout,
		BaseContext: func(net.Listener) context.Context { return ctx },
		ConnContext: strangers.WithConnection,
		ErrorLog:    log.New(io.Discard, "", 0), // refused handshakes are the network's noise
	}
	listener = strangers.NewDoor(strangers.Limit()).Listener(listener)
	if cfg.TLS != nil {
		listener = tls.NewListener(listener, http1Only(cfg.TLS))
	}
	var children sync.WaitGroup
	defer children.Wait()
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

// admitted notes that the client of a connection is no stranger: its request was let in.
func admitted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		strangers.KnownIn(r.Context())
		next.ServeHTTP(w, r)
	})
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
	// dials are connections of servers to pods, streams what users do with pods.
	dials, streams sharing
	// looks are the turns of those who read logs.
	looks *shares.Turns
	// processor is divided among the namespaces whose streams pass.
	processor *cpushare.Share
	// layers has room for those that are sent.
	layers chan struct{}
}

func newServer(cfg Config) *server {
	return &server{
		Config: cfg, layers: make(chan struct{}, layersMax),
		dials:   newSharing("connections of servers to pods of this node", dialsMax, podDialsMax),
		streams: newSharing("streams of pods of this node", shares.OfMemory(streamsMax, streamBytes, streamMemoryPart), podStreamsMax),
		looks:   newLooks(),
		samples: samples{seat: make(chan struct{}, 1)},

		processor: cpushare.New(cpushare.Process()),
	}
}

// handler routes as the kubelet does.
func (s *server) handler() http.Handler {
	mux := &routes{ServeMux: http.NewServeMux()}
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.shared(s.logs))
	for _, verb := range []string{"GET ", "POST "} { // WebSocket and SPDY clients
		mux.HandleFunc(verb+"/exec/{namespace}/{pod}/{container}", s.shared(s.paying(s.exec)))
		mux.HandleFunc(verb+"/exec/{namespace}/{pod}/{uid}/{container}", s.shared(s.paying(s.exec)))
		mux.HandleFunc(verb+"/attach/{namespace}/{pod}/{container}", s.shared(s.paying(s.attach)))
		mux.HandleFunc(verb+"/attach/{namespace}/{pod}/{uid}/{container}", s.shared(s.paying(s.attach)))
		mux.HandleFunc(verb+"/portForward/{namespace}/{pod}", s.shared(s.paying(s.portForward)))
		mux.HandleFunc(verb+"/portForward/{namespace}/{pod}/{uid}", s.shared(s.paying(s.portForward)))
	}
	mux.HandleFunc("GET "+poddial.Path+"{address}", s.dial)
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /metrics/resource", s.resourceMetrics)
	mux.HandleFunc("GET /metrics/cadvisor", s.cadvisorMetrics)
	mux.HandleFunc("GET /metrics/probes", s.probeMetrics)
	mux.HandleFunc("GET /configz", s.configz)
	mux.HandleFunc("POST /checkpoint/{namespace}/{pod}/{container}", s.checkpoint)
	mux.HandleFunc("GET /healthz", s.healthz)
	mux.HandleFunc("GET "+LayersPath+"{digest}", s.layer)
	s.localVolumes(mux)
	s.profiles(mux)
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry(), promhttp.HandlerOpts{}))
	s.pages(mux)
	return mux
}

// profiles are served at every method, as by a kubelet: POST asks for symbols.
func (s *server) profiles(mux *routes) {
	if s.NoProfiles {
		return
	}
	all := profiles.Handlers()
	for path, handler := range all {
		mux.Handle(path, handler)
	}
	mux.Handle(profiles.Path+"/{$}", all[profiles.Path])
}

func (s *server) healthz(w http.ResponseWriter, r *http.Request) {
	if _, err := s.Runtime.Status(r.Context(), false); err != nil {
		http.Error(w, "container runtime is down: "+err.Error(), http.StatusInternalServerError)
		return
	}
	fmt.Fprint(w, "ok")
}

// configz shows the configuration under upstream's name for it.
func (s *server) configz(w http.ResponseWriter, _ *http.Request) {
	var configuration any = struct{}{}
	if s.Configuration != nil {
		configuration = s.Configuration()
	}
	writeJSON(w, map[string]any{"kubeletconfig": configuration})
}

// checkpoint: containers cannot be written down here.
func (s *server) checkpoint(w http.ResponseWriter, r *http.Request) {
	http.Error(w, fmt.Sprintf("checkpointing of %v/%v/%v not implemented in Setpoint's agent",
		r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")), http.StatusNotImplemented)
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
