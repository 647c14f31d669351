package requestmetrics

import (
	"context"
	"crypto/x509"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/metrics"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/endpoints/responsewriter"

	"github.com/setpoint-io/setpoint/internal/histograms"
)

// component is the label of that name.
const component = "apiserver"

// Upstream's bounds of buckets, in seconds.
var (
	sliBounds        = []float64{0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1.0, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	durationBounds   = append([]float64{0.005, 0.025}, sliBounds...)
	sizeBounds       = prometheus.ExponentialBuckets(1000, 10, 7) // bytes
	expirationBounds = hours(0, 0.5, 1, 2, 6, 12, 24, 2*24, 4*24, 7*24, 30*24, 3*30*24, 6*30*24, 12*30*24)
)

func hours(bounds ...float64) []float64 {
	for i := range bounds {
		bounds[i] *= time.Hour.Seconds()
	}
	return bounds
}

// Requests counts. The methods may be called from any goroutine.
type Requests struct {
	total                 *prometheus.CounterVec
	duration, sli, sizes  *prometheus.HistogramVec
	longRunning, inflight *prometheus.GaugeVec
	deprecated            *prometheus.GaugeVec
	expiration            prometheus.Histogram
	mutating, readOnly    prometheus.Gauge
	finished              sync.Map // key to *series: what a Vec would find by hashing all labels
	collectors            []prometheus.Collector
}

// labels of a request, but for its code.
type labels struct{ verb, dryRun, group, version, resource, subresource, scope string }

type key struct {
	labels
	code int
}

// series are what a finished request adds to.
type series struct {
	total         prometheus.Counter
	duration, sli prometheus.Observer // sli is nil for a dry run
	size          prometheus.Observer // nil for what is no read
}

// New counts from 0.
func New() *Requests {
	kind := []string{"group", "version", "resource", "subresource", "scope", "component"}
	verb, dryRun := append([]string{"verb"}, kind...), append([]string{"verb", "dry_run"}, kind...)
	gauge := func(name, help string, labels ...string) *prometheus.GaugeVec {
		return prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, labels)
	}
	m := &Requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "apiserver_request_total", Help: "Requests that ended, by what was asked for and the HTTP status of the answer.",
		}, append(slices.Clone(dryRun), "code")),
		duration: prometheus.NewHistogramVec(histograms.Options("apiserver_request_duration_seconds",
			"Time from the arrival of a request to the end of its answer.", durationBounds), dryRun),
		sli: prometheus.NewHistogramVec(histograms.Options("apiserver_request_sli_duration_seconds",
			"The same without the time in a queue of priority and fairness, and without dry runs. Webhooks are counted.", sliBounds), verb),
		sizes: prometheus.NewHistogramVec(histograms.Options("apiserver_response_sizes",
			"Bytes of the answers to GET and LIST.", sizeBounds), verb),
		longRunning: gauge("apiserver_longrunning_requests", "Watches, logs and other streams that are open now.", verb...),
		deprecated: gauge("apiserver_requested_deprecated_apis", "Always 1: what is deprecated and was asked for, and the release that will not have it.",
			"group", "version", "resource", "subresource", "removed_release"),
		inflight: gauge("apiserver_current_inflight_requests", "Requests that execute now, without streams.", "request_kind"),
		expiration: prometheus.NewHistogram(histograms.Options("apiserver_client_certificate_expiration_seconds",
			"Time that the client's certificate of a request was still valid.", expirationBounds)),
	}
	m.mutating, m.readOnly = m.inflight.WithLabelValues("mutating"), m.inflight.WithLabelValues("readOnly")
	m.collectors = []prometheus.Collector{m.total, m.duration, m.sli, m.sizes, m.longRunning, m.inflight, m.deprecated, m.expiration}
	return m
}

// Describe implements prometheus.Collector.
func (m *Requests) Describe(out chan<- *prometheus.Desc) {
	for _, c := range m.collectors {
		c.Describe(out)
	}
}

// Collect implements prometheus.Collector.
func (m *Requests) Collect(out chan<- prometheus.Metric) {
	for _, c := range m.collectors {
		c.Collect(out)
	}
}

// Serve answers with the handler and counts. The request must be for something that is served: its kind becomes a label.
// A nil Requests only answers.
func (m *Requests) Serve(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, streams bool, handler http.HandlerFunc) {
	if m == nil {
		handler(w, r)
		return
	}
	begun := time.Now()
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		m.certificate(r.TLS.PeerCertificates[0], begun)
	}
	l := labelsOf(r, info)
	running := m.running(l, info, streams)
	running.Inc()
	answer := &metrics.ResponseWriterDelegator{ResponseWriter: w}
	returned := false
	defer func() {
		running.Dec()
		code := answer.Status()
		switch {
		case code == 0 && !returned:
			code = http.StatusInternalServerError // the chain answers so to a panic
		case code == 0:
			code = http.StatusOK
		}
		m.ended(key{l, code}, received(r, begun), begun, answer.ContentLength())
	}()
	handler(responsewriter.WrapForHTTP1Or2(answer), r)
	returned = true
}

// Deprecated notes a request, by its context, for something that the release removed will not have: in the metrics, unless m is nil, and
// in the audit log. removed is empty if no release is named.
func (m *Requests) Deprecated(ctx context.Context, removed string) {
	audit.AddAuditAnnotation(ctx, "k8s.io/deprecated", "true")
	if removed != "" {
		audit.AddAuditAnnotation(ctx, "k8s.io/removed-release", removed)
	}
	if info, ok := request.RequestInfoFrom(ctx); ok && m != nil {
		m.deprecated.WithLabelValues(info.APIGroup, info.APIVersion, info.Resource, info.Subresource, removed).Set(1)
	}
}

func (m *Requests) certificate(c *x509.Certificate, now time.Time) {
	m.expiration.Observe(c.NotAfter.Sub(now).Seconds())
}

// received is when the request came; begun if nobody noted that.
func received(r *http.Request, begun time.Time) time.Time {
	if at, ok := request.ReceivedTimestampFrom(r.Context()); ok {
		return at
	}
	return begun
}

func (m *Requests) running(l labels, info *request.RequestInfo, streams bool) prometheus.Gauge {
	switch info.Verb {
	case "get", "list", "watch":
		if !streams {
			return m.readOnly
		}
	default:
		if !streams {
			return m.mutating
		}
	}
	return m.longRunning.WithLabelValues(l.verb, l.group, l.version, l.resource, l.subresource, l.scope, component)
}

// ended counts a request that is over.
func (m *Requests) ended(k key, received, begun time.Time, bytes int) {
	found, ok := m.finished.Load(k)
	if !ok {
		found, _ = m.finished.LoadOrStore(k, m.newSeries(k))
	}
	s, now := found.(*series), time.Now()
	s.total.Inc()
	s.duration.Observe(now.Sub(received).Seconds())
	if s.sli != nil {
		s.sli.Observe(now.Sub(begun).Seconds())
	}
	if s.size != nil {
		s.size.Observe(float64(bytes))
	}
}

func (m *Requests) newSeries(k key) *series {
	kind := []string{k.group, k.version, k.resource, k.subresource, k.scope, component}
	dryRun := append([]string{k.verb, k.dryRun}, kind...)
	s := &series{duration: m.duration.WithLabelValues(dryRun...)}
	s.total = m.total.WithLabelValues(append(dryRun, strconv.Itoa(k.code))...)
	if k.verb == http.MethodGet || k.verb == "LIST" {
		s.size = m.sizes.WithLabelValues(append([]string{k.verb}, kind...)...)
	}
	if k.dryRun == "" {
		s.sli = m.sli.WithLabelValues(append([]string{k.verb}, kind...)...)
	}
	return s
}

// labelsOf are upstream's. A path without a resource is the label subresource, as upstream's health checks have it.
func labelsOf(r *http.Request, info *request.RequestInfo) labels {
	if !info.IsResourceRequest {
		return labels{verb: metrics.CanonicalVerb(r.Method, ""), subresource: info.Path}
	}
	l := labels{
		group: info.APIGroup, version: info.APIVersion, resource: info.Resource, subresource: info.Subresource,
		scope: scopeOf(info), verb: verbOf(r, info),
	}
	if strings.Contains(r.URL.RawQuery, "dryRun") {
		l.dryRun = "invalid"
		if values := slices.Compact(slices.Sorted(slices.Values(r.URL.Query()["dryRun"]))); len(values) == 0 {
			l.dryRun = ""
		} else if len(values) == 1 && values[0] == metav1.DryRunAll {
			l.dryRun = metav1.DryRunAll
		}
	}
	return l
}

// scopeOf is that of the path: a list with a field selector for one name is still a list.
func scopeOf(info *request.RequestInfo) string {
	switch {
	case len(info.Parts) > 1 || info.Verb == "create":
		return "resource"
	case info.Namespace != "":
		return "namespace"
	}
	return "cluster"
}

// verbOf is upstream's verb of metrics: methods, but for LIST, WATCH, APPLY and CONNECT. The resolver has read the query already.
func verbOf(r *http.Request, info *request.RequestInfo) string {
	switch info.Subresource {
	case "log", "exec", "attach", "portforward", "proxy":
		return "CONNECT"
	}
	switch info.Verb {
	case "watch", "list":
		return strings.ToUpper(info.Verb)
	case "deletecollection":
		return http.MethodDelete
	case "patch":
		return metrics.CleanVerb(http.MethodPatch, r, info)
	}
	switch r.Method {
	case http.MethodGet, http.MethodHead:
		return http.MethodGet
	case http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch:
		return r.Method
	}
	return metrics.OtherRequestMethod
}
