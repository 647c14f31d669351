package discovery

import (
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// ErrNoKinds says that a Handler was asked to offer nothing.
var ErrNoKinds = errors.New("discovery: no kinds")

// Config of a Handler.
type Config struct {
	// Kinds are offered in this order; at least one.
	Kinds []*resource.Any
	// Address is the server's host:port, told to clients that ask the legacy documents.
	Address string
	// Version is Setpoint's own ("0.1.0"); it stands behind the "+" of gitVersion.
	Version string
	// Checks are the server's health checks; "ping" is added.
	Checks []Check
	// Metrics are served at /metrics. Nil: no such path.
	Metrics prometheus.Gatherer
	// Logger hears of failing checks. Nil: nobody does.
	Logger *slog.Logger
}

// Handler answers the paths that Handles names. Authorization is the caller's.
type Handler struct {
	config  Config
	health  *health
	metrics http.Handler
	offer   atomic.Pointer[offer]
}

// offer is everything derived from one set of kinds.
type offer struct {
	documents *documents
	openapi   *openAPI
}

// New returns a handler that offers the kinds of the config.
func New(config Config) (*Handler, error) {
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	h := &Handler{config: config, health: newHealth(config.Checks, config.Logger)}
	if config.Metrics != nil {
		h.metrics = promhttp.HandlerFor(config.Metrics, promhttp.HandlerOpts{})
	}
	return h, h.SetKinds(config.Kinds)
}

// SetKinds replaces what is offered, at once for all documents. It may be called while
// requests are served; the kinds must not change afterwards.
func (h *Handler) SetKinds(kinds []*resource.Any) error {
	if len(kinds) == 0 {
		return ErrNoKinds
	}
	documents, err := newDocuments(kinds, h.config.Address)
	if err != nil {
		return err
	}
	h.offer.Store(&offer{documents: documents, openapi: newOpenAPI(kinds, gitVersion(h.config.Version))})
	return nil
}

// Handles reports whether a path is answered here; all others are for apiserver/rest.
func Handles(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "", "healthz", "livez", "readyz", "openapi":
		return true
	case "version", "metrics":
		return len(parts) == 1
	case "api":
		return len(parts) <= 2
	case "apis":
		return len(parts) <= 3
	}
	return false
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "only GET and HEAD are answered here", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	now := h.offer.Load()
	path := "/" + strings.Trim(request.URL.Path, "/")
	first, _, _ := strings.Cut(path[1:], "/")
	switch first {
	case "":
		h.servePaths(w, now)
	case "api", "apis":
		now.documents.serve(w, request, path)
	case "openapi":
		now.openapi.serve(w, request, path)
	case "healthz", "livez", "readyz":
		h.health.serve(w, request, path)
	case "version":
		writeJSON(w, versionInfo(h.config.Version))
	case "metrics":
		h.serveMetrics(w, request)
	default:
		http.NotFound(w, request)
	}
}

func (h *Handler) serveMetrics(w http.ResponseWriter, request *http.Request) {
	if h.metrics == nil {
		http.NotFound(w, request)
		return
	}
	h.metrics.ServeHTTP(w, request)
}

// servePaths lists what can be asked here, for people who open the server in a browser.
func (h *Handler) servePaths(w http.ResponseWriter, now *offer) {
	paths := append(now.documents.paths(), now.openapi.paths()...)
	paths = append(paths, h.health.paths()...)
	if h.metrics != nil {
		paths = append(paths, "/metrics")
	}
	writeJSON(w, map[string][]string{"paths": append(paths, "/version")})
}

func writeJSON(w http.ResponseWriter, value any) {
	text, err := json.MarshalIndent(value, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(text) // a client that went away needs no answer
}
