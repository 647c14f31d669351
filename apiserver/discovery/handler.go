package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// ErrNoKinds says that a Handler was asked to offer nothing.
var ErrNoKinds = errors.New("discovery: no kinds")

// Config of a Handler.
type Config struct {
	// Kinds are offered in this order; at least one.
	Kinds []*resource.Any
	// Custom are further kinds, which come and go: asked for each request, it returns
	// the same slice as long as nothing changed. Nil: there are none.
	Custom func(ctx context.Context) ([]*resource.Any, error)
	// Remotes are the group versions that other servers answer for; as with Custom, the
	// same slice as long as nothing changed. Nil: there are none.
	Remotes func() []Remote
	// Priority orders groups and versions, the higher first. Nil: groups in the order of
	// the kinds, versions by their names.
	Priority func(gv schema.GroupVersion) (group, version int32)
	// Address is the server's host:port, told to clients that ask the legacy documents.
	Address string
	// Version is Setpoint's own ("0.1.0"); it stands behind the "+" of gitVersion.
	Version string
	// Documents are further paths to answer, exactly these.
	Documents map[string]http.Handler
	// Checks are the server's health checks; "ping" is added.
	Checks []Check
	// Metrics are served at /metrics, those of health checks at /metrics/slis. Nil: no such paths.
	Metrics prometheus.Gatherer
	// Logger gets failing checks. Nil: they are not logged.
	Logger *slog.Logger
}

// Handler answers the paths that Handles names. Authorization is the caller's.
type Handler struct {
	config  Config
	health  *health
	metrics http.Handler
	offer   atomic.Pointer[offer]
	// renewing is held while an offer is made.
	renewing sync.Mutex
}

// offer is everything derived from one set of kinds.
type offer struct {
	kinds, custom []*resource.Any
	remotes       []Remote

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
	h.renewing.Lock()
	defer h.renewing.Unlock()
	var custom []*resource.Any
	var remotes []Remote
	if last := h.offer.Load(); last != nil {
		custom, remotes = last.custom, last.remotes
	}
	return h.renew(kinds, custom, remotes)
}

// renew makes a new offer. OpenAPI documents that stay the same are taken over.
func (h *Handler) renew(kinds, custom []*resource.Any, remotes []Remote) error {
	local := notRemote(slices.Concat(kinds, custom), remotes)
	documents, err := newDocuments(groupsOf(local, remotes, h.config.Priority), h.config.Address)
	if err != nil {
		return err
	}
	next := &offer{
		kinds: kinds, custom: custom, remotes: remotes,
		documents: documents, openapi: newOpenAPI(local, remotes, slices.Sorted(maps.Keys(h.config.Documents))),
	}
	if last := h.offer.Load(); last != nil {
		next.openapi.takeOver(last.openapi)
	}
	h.offer.Store(next)
	return nil
}

// current is the offer with the custom kinds and remotes of this moment.
func (h *Handler) current(ctx context.Context) (*offer, error) {
	now := h.offer.Load()
	custom, remotes, err := h.changing(ctx)
	if err != nil || now.has(custom, remotes) {
		return now, err
	}
	h.renewing.Lock()
	defer h.renewing.Unlock()
	if now = h.offer.Load(); now.has(custom, remotes) {
		return now, nil
	}
	err = h.renew(now.kinds, custom, remotes)
	return h.offer.Load(), err
}

// changing is what comes and goes.
func (h *Handler) changing(ctx context.Context) (custom []*resource.Any, remotes []Remote, err error) {
	if h.config.Remotes != nil {
		remotes = h.config.Remotes()
	}
	if h.config.Custom != nil {
		custom, err = h.config.Custom(ctx)
	}
	return custom, remotes, err
}

func (o *offer) has(custom []*resource.Any, remotes []Remote) bool {
	return same(custom, o.custom) && same(remotes, o.remotes)
}

// same reports whether two slices are one.
func same[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// Handles reports whether a path is answered here; all others are for apiserver/rest.
func Handles(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "", "healthz", "livez", "readyz", "openapi":
		return true
	case "version":
		return len(parts) == 1
	case "metrics":
		return len(parts) == 1 || len(parts) == 2 && (parts[1] == "slis" || parts[1] == "resources")
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
	path := "/" + strings.Trim(request.URL.Path, "/")
	if document, ok := h.config.Documents[path]; ok {
		document.ServeHTTP(w, request)
		return
	}
	first, _, _ := strings.Cut(path[1:], "/")
	switch first {
	// Whether this server lives does not depend on the others.
	case "healthz", "livez", "readyz":
		h.health.serve(w, request, path)
	case "version":
		writeJSON(w, VersionInfo(h.config.Version))
	case "metrics":
		h.serveMetrics(w, request, path)
	default:
		h.serveOffer(w, request, path, first)
	}
}

// serveOffer answers what depends on the kinds that are served at this moment.
func (h *Handler) serveOffer(w http.ResponseWriter, request *http.Request, path, first string) {
	now, err := h.current(request.Context())
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	switch first {
	case "":
		h.servePaths(w, now)
	case "api", "apis":
		now.documents.serve(w, request, path)
	case "openapi":
		now.openapi.serve(w, request, path)
	default:
		http.NotFound(w, request)
	}
}

func (h *Handler) serveMetrics(w http.ResponseWriter, request *http.Request, path string) {
	switch {
	case h.metrics == nil:
		http.NotFound(w, request)
	case path == "/metrics/slis":
		h.health.serveIndicators(w, request)
	default:
		h.metrics.ServeHTTP(w, request)
	}
}

// servePaths lists what can be asked here, for people who open the server in a browser.
func (h *Handler) servePaths(w http.ResponseWriter, now *offer) {
	paths := append(now.documents.paths(), now.openapi.paths()...)
	paths = append(paths, h.health.paths()...)
	paths = slices.AppendSeq(paths, maps.Keys(h.config.Documents))
	if h.metrics != nil {
		paths = append(paths, "/metrics", "/metrics/slis")
	}
	paths = append(paths, "/version")
	slices.Sort(paths)
	writeJSON(w, map[string][]string{"paths": paths})
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
