package apiserver

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/runtime/serializer/cbor"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/apiserver/requestmetrics"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/cpushare"
	"github.com/setpoint-io/setpoint/internal/reserved"
	"github.com/setpoint-io/setpoint/internal/revocation"
)

// Config is what a Server is made of. All fields are required unless they say otherwise.
type Config struct {
	Kinds    []*resource.Any
	Scheme   *runtime.Scheme
	Storage  *storage.Store
	Kubelets rest.Kubelets
	// Servers are whose parts are seen as pods. Nil: there are no such pods.
	Servers rest.Servers
	// Pods reaches whatever listens in a pod or on a node, for the proxy subresources.
	Pods      http.RoundTripper
	Admission admission.Interface
	// Quota limits what namespaces hold; may be nil.
	Quota rest.Quota
	// Reserved are ports of machines that no Service is given as its node port; nil: there are none.
	Reserved      *reserved.Book
	Authenticator authenticator.Request
	Authorizer    authorizer.Authorizer
	// Revoked knows who is shut out: what he has open is ended, and nobody acts as him. Nil: nobody is. Authenticator asks it too.
	Revoked *revocation.Judge
	// NodeKeys know whose the names of nodes are. Nil: all are whose certificate says so. Authenticator asks them too.
	NodeKeys      *auth.NodeKeys
	TypeConverter managedfields.TypeConverter
	// Custom serves what CustomResourceDefinitions define; nil: nothing does.
	Custom *crd.Catalog
	// Elsewhere passes requests on to other servers; nil: nothing is.
	Elsewhere Elsewhere
	// Tokens makes the tokens of service accounts; nil serves none.
	Tokens *tokens.Issuer
	// Reviews are answered, not stored.
	Reviews []reviews.Review
	// Computed are made when they are asked for, not stored.
	Computed []rest.Computed
	// Health is what component statuses tell; nil: they are not served.
	Health func(ctx context.Context) error
	// Discovery serves everything that is not a resource: /api, /apis, /openapi, /version, health, /metrics.
	Discovery http.Handler
	// Services, if any, are what the parts of the system say to each other, by path prefix.
	Services []Service
	// Fairness queues requests by priority and flow; nil: no request waits.
	Fairness *flowcontrol.Fairness
	// Processor divides the time of the processors among tenants; nil: it is not divided.
	Processor *cpushare.Share
	// Shares divide watches and streams among tenants; nil: new ones.
	Shares *Shares
	// Written, if any, is told of the writes of clients. It must not wait.
	Written Written
	// Requests counts what is answered; nil: nothing does.
	Requests *requestmetrics.Requests
	// Streams, if any, ends when watches, logs and other requests without an end of their own have to end.
	Streams context.Context
	// Audit records requests; nil: nothing does.
	Audit  Audit
	Logger *slog.Logger
}

// Audit is where the records of requests go, and which there are.
type Audit interface {
	Sink() audit.Sink
	Policy() audit.PolicyRuleEvaluator
}

// Elsewhere finds the requests that aggregated API servers or custom resources answer.
type Elsewhere interface {
	// Handler returns what passes a request on, or nil.
	Handler(r *http.Request) http.Handler
	// CatchUp waits until Handler knows all that was written in the cluster before the call.
	CatchUp(ctx context.Context) error
}

// Server answers requests. It is safe for concurrent use.
type Server struct {
	config    Config
	codecs    serializer.CodecFactory
	endpoints *rest.Endpoints
	chain     http.Handler
}

// New builds the handlers of all kinds and the chain before them.
func New(config Config) (*Server, error) {
	s := &Server{config: config, codecs: NewCodecs(config.Scheme)}
	s.config.Shares = cmp.Or(config.Shares, NewShares())
	var err error
	s.endpoints, err = rest.NewEndpoints(rest.Config{
		Kinds: config.Kinds, Scheme: config.Scheme, Codecs: s.codecs, Storage: config.Storage, Kubelets: config.Kubelets, Servers: config.Servers,
		Pods:      config.Pods,
		Admission: config.Admission, Quota: config.Quota, Reserved: config.Reserved,
		Authorizer: config.Authorizer, TypeConverter: config.TypeConverter,
		Tokens: config.Tokens, Reviews: config.Reviews, Computed: config.Computed, Health: config.Health, Audited: config.Audit != nil,
		Deprecated: config.Requests.Deprecated,
	})
	if err != nil {
		return nil, err
	}
	s.chain = s.newChain(http.HandlerFunc(s.route))
	return s, nil
}

// NewCodecs returns the encodings on the wire: JSON, YAML, protobuf and CBOR.
func NewCodecs(scheme *runtime.Scheme) serializer.CodecFactory {
	return serializer.NewCodecFactory(scheme, serializer.WithSerializer(cbor.NewSerializerInfo))
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.chain.ServeHTTP(w, r) }

// route hands an authorized request to what serves it.
func (s *Server) route(w http.ResponseWriter, r *http.Request) {
	if s.passOn(w, r) {
		return
	}
	info, ok := request.RequestInfoFrom(r.Context())
	if !ok || !info.IsResourceRequest {
		s.serveDocument(w, r, info)
		return
	}
	handler, found := s.endpoints.Handler(info)
	if handler == nil && !found && s.config.Custom != nil {
		handler, found = s.config.Custom.Handler(r.Context(), s.endpoints, info)
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "//"):
		http.NotFound(w, r)
	case handler != nil && len(content.IsPathSegmentName(info.Name)) > 0:
		s.refuse(w, r, misnamed(info.Name))
	case handler != nil:
		s.config.Requests.Serve(w, r, info, s.longRunning(r, info), handler)
	case found:
		s.refuse(w, r, unserved(http.StatusMethodNotAllowed))
	case s.config.Elsewhere != nil && s.config.Elsewhere.CatchUp(r.Context()) == nil && s.passOn(w, r):
	case s.endpoints.HasGroup(info.APIGroup):
		s.refuse(w, r, unserved(http.StatusNotFound))
	default:
		http.NotFound(w, r)
	}
}

// serveDocument answers what is no resource. Of these, health checks are counted, as upstream does.
func (s *Server) serveDocument(w http.ResponseWriter, r *http.Request, info *request.RequestInfo) {
	switch r.URL.Path {
	case "/healthz", "/livez", "/readyz":
		s.config.Requests.Serve(w, r, info, false, s.config.Discovery.ServeHTTP)
	default:
		s.config.Discovery.ServeHTTP(w, r)
	}
}

// misnamed refuses a name that no object can have, since it is no part of a path.
func misnamed(name string) error {
	why := strings.Join(content.IsPathSegmentName(name), ";")
	return apierrors.NewBadRequest(fmt.Sprintf("Name parameter invalid: %q: %s", name, why))
}

// passOn reports whether another server has answered.
func (s *Server) passOn(w http.ResponseWriter, r *http.Request) bool {
	if s.config.Elsewhere == nil {
		return false
	}
	elsewhere := s.config.Elsewhere.Handler(r)
	if elsewhere == nil {
		return false
	}
	elsewhere.ServeHTTP(w, r)
	return true
}

// unserved is what a client is told of a path or method, of which there is nothing to say.
func unserved(code int) error {
	return apierrors.NewGenericServerResponse(code, "", schema.GroupResource{}, "", "", 0, false)
}

func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	responsewriters.ErrorNegotiated(err, s.codecs, schema.GroupVersion{Version: "v1"}, w, r)
}

// requestTimeout bounds every request that is no watch, log or stream.
const requestTimeout = 60 * time.Second
