package setpoint

import (
	"context"
	"errors"
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
	"github.com/setpoint-io/setpoint/apiserver/auth/join"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/crd"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
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
	var err error
	if s.access, err = s.newAccess(self); err != nil {
		return err
	}
	s.custom, err = crd.New(crd.Config{
		Codecs: apiserver.NewCodecs(scheme), Storage: s.storage, Models: discovery.MetadataModels, Services: dynamic.NewServiceResolver(s.storage),
	})
	if err != nil {
		return err
	}
	documents, err := discovery.New(discovery.Config{
		Kinds: append(all[:len(all):len(all)], reviews.Kinds(s.access.reviews)...), Custom: s.custom.Kinds, Address: self.Endpoint, Version: Version, Logger: s.config.Logger,
		Documents: s.access.documents, Metrics: s.metrics(),
		Checks: []discovery.Check{{Name: "log", Check: s.checkLog}, {Name: "system-objects", Check: s.checkSystem}},
	})
	if err != nil {
		return err
	}
	admit, err := s.newAdmission(ctx, s.access.authorizer)
	if err != nil {
		return err
	}
	s.quota = quota.New(s.storage)
	s.api, err = apiserver.New(apiserver.Config{
		Kinds: all, Scheme: scheme, Storage: s.storage,
		Kubelets:      newKubelets(s.identity),
		Admission:     admit,
		Quota:         s.quota,
		Authenticator: s.access.authenticator,
		Authorizer:    s.access.authorizer,
		Tokens:        s.access.issuer,
		Reviews:       s.access.reviews,
		TypeConverter: &lazyTypeConverter{},
		Custom:        s.custom,
		Discovery:     documents,
		Services:      s.services(),
		Logger:        s.config.Logger,
	})
	return err
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
	return registry
}

// services are what the parts say to each other on the API's port.
func (s *Server) services() []apiserver.Service {
	pattern, peers := s.log.Handler()
	trust := s.config.Trust
	services := []apiserver.Service{
		{Prefix: pattern, Handler: peers, Allow: isServer},
		{Prefix: statusPath, Handler: http.HandlerFunc(s.serveStatus), Allow: isServer},
		{Prefix: backupPath, Handler: newBackupHandler(s), Allow: isAdministrator},
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
