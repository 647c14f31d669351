package setpoint

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/aggregation"
	"github.com/setpoint-io/setpoint/apiserver/auth/join"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/fairness"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/rest/proxy"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

var (
	namespacesResource = corev1.SchemeGroupVersion.WithResource("namespaces")
)

var errNoSystemObjects = errors.New("the system namespaces are not there yet")

// buildAPI makes the API server over the opened log.
func (s *Server) buildAPI(ctx context.Context, self pki.Server) error {
	scheme, all := kinds.NewScheme(), kinds.All()
	s.storage = storage.New(s.log, scheme, all)
	s.fairness = fairness.New()
	var err error
	if s.access, err = s.newAccess(ctx, self); err != nil {
		return err
	}
	if s.frontProxy, err = aggregation.NewFrontProxy(s.config.Trust.CA); err != nil {
		return err
	}
	services, codecs := dynamic.NewServiceResolver(s.storage), apiserver.NewCodecs(scheme)
	s.aggregation = aggregation.New(aggregation.Config{
		Store: s.storage, Services: services, Certificate: s.frontProxy.Certificate, Codecs: codecs, Logger: s.config.Logger,
	})
	s.custom, err = crd.New(crd.Config{Codecs: codecs, Storage: s.storage, Models: discovery.MetadataModels, Services: services})
	if err != nil {
		return err
	}
	s.offered = append(all[:len(all):len(all)], rest.Bindings(), rest.ComponentStatuses())
	s.offered = append(s.offered, reviews.Kinds(s.access.reviews)...)
	documents, err := discovery.New(discovery.Config{
		Kinds: s.offered, Custom: s.custom.Kinds, Remotes: s.aggregation.Remotes, Priority: priorityOf,
		Address: self.Endpoint, Version: Version, Logger: s.config.Logger,
		Documents: s.documents(), Metrics: s.metrics(),
		Checks: []discovery.Check{{Name: "log", Check: s.checkLog}, {Name: "system-objects", Check: s.checkSystem}},
	})
	if err != nil {
		return err
	}
	admit, err := s.newAdmission(ctx, s.access.authorizer)
	if err != nil {
		return err
	}
	if err := s.fairness.Follow(s.caches); err != nil {
		return err
	}
	s.quota = quota.New(s.storage)
	s.api, err = apiserver.New(apiserver.Config{
		Kinds: all, Scheme: scheme, Storage: s.storage,
		Kubelets:      newKubelets(s.identity),
		Pods:          proxy.NewTransport(),
		Admission:     admit,
		Quota:         s.quota,
		Authenticator: s.access.authenticator,
		Authorizer:    s.access.authorizer,
		Tokens:        s.access.issuer,
		Reviews:       s.access.reviews,
		Health:        s.checkLog,
		TypeConverter: &lazyTypeConverter{},
		Custom:        s.custom,
		Elsewhere:     s.aggregation,
		Discovery:     documents,
		Services:      s.services(),
		Fairness:      s.fairness,
		Audit:         s.audit(),
		Logger:        s.config.Logger,
	})
	return err
}

// documents are paths beside resources and what upstream's discovery has.
func (s *Server) documents() map[string]http.Handler {
	all := maps.Clone(s.access.documents)
	maps.Copy(all, s.fairness.Documents())
	return all
}

// audit is nil, not an interface of nothing, without a log.
func (s *Server) audit() apiserver.Audit {
	if s.config.AuditLog == nil {
		return nil
	}
	return s.config.AuditLog
}

// checkLog fails while no majority answers.
func (s *Server) checkLog(ctx context.Context) error {
	_, err := s.log.ReadIndex(ctx)
	return err
}

// checkSystem fails until the leader has made what every cluster has.
func (s *Server) checkSystem(context.Context) error {
	if namespaces := s.storage.Table(namespacesResource).Count(); namespaces < len(systemNamespaces) {
		return errNoSystemObjects
	}
	return nil
}

func (s *Server) metrics() prometheus.Gatherer {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "setpoint_revision", Help: "Newest revision applied on this replica.",
	}, func() float64 { return float64(s.storage.Revision()) }))
	registry.MustRegister(s.fairness)
	if s.config.AuditLog != nil {
		registry.MustRegister(s.config.AuditLog.Lost())
	}
	return registry
}

// services are what the parts say to each other on the API's port.
func (s *Server) services() []apiserver.Service {
	pattern, peers := s.log.Handler()
	trust := s.config.Trust
	services := []apiserver.Service{
		{Prefix: pattern, Handler: peers, Allow: isServer},
		{Prefix: statusPath, Handler: http.HandlerFunc(s.serveStatus), Allow: isServer},
		{Prefix: backupPath, Handler: newBackupHandler(s), Allow: isAdmin, Audited: true},
		{Prefix: join.Path, Handler: join.NewHandler(join.HandlerConfig{
			Signer: trust.CA, CAPEM: trust.CA.CertPEM(), Tokens: []pki.Token{trust.NodeToken},
			GossipKey: trust.GossipKey, Servers: s.config.InitialServers, Logger: s.config.Logger,
		})},
	}
	services = append(services, s.memberServices()...)
	return append(services, s.liveness.Services()...)
}

// lazyTypeConverter loads the schemas at the first write that needs them, not
// when the server starts.
type lazyTypeConverter struct {
	load sync.Once
	real managedfields.TypeConverter
	err  error
}

func (l *lazyTypeConverter) converter() (managedfields.TypeConverter, error) {
	l.load.Do(func() { l.real, l.err = discovery.TypeConverter() })
	return l.real, l.err
}

// ObjectToTyped implements managedfields.TypeConverter.
func (l *lazyTypeConverter) ObjectToTyped(obj runtime.Object, options ...typed.ValidationOptions) (*typed.TypedValue, error) {
	c, err := l.converter()
	if err != nil {
		return nil, err
	}
	return c.ObjectToTyped(obj, options...)
}

// TypedToObject implements managedfields.TypeConverter.
func (l *lazyTypeConverter) TypedToObject(value *typed.TypedValue) (runtime.Object, error) {
	c, err := l.converter()
	if err != nil {
		return nil, err
	}
	return c.TypedToObject(value)
}
