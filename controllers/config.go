package controllers

import (
	"errors"
	"log/slog"
	"net/netip"

	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	aggregator "k8s.io/kube-aggregator/pkg/client/clientset_generated/clientset"

	"github.com/setpoint-io/setpoint/controllers/apiservice"
	"github.com/setpoint-io/setpoint/controllers/certificates"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/controllers/legacytoken"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

// ErrConfig is returned by Run when a required field is missing.
var ErrConfig = errors.New("controllers: incomplete config")

// DefaultPodCIDR is the range that nodes get their pod addresses from.
const DefaultPodCIDR = "10.42.0.0/16"

// Config is everything that the controllers need for one term.
type Config struct {
	// Client writes; built for the term, because its transport carries the
	// term's fence. It should have no client-side rate limit. Required.
	Client kubernetes.Interface
	// Extensions judges definitions of custom resources; same fence. Required.
	Extensions apiextensions.Interface
	// Metadata deletes objects of any kind, for garbage collection and
	// namespace deletion; same fence. Required.
	Metadata metadata.Interface
	// Discovery lists the kinds that a deleted namespace may hold. Required.
	Discovery discovery.DiscoveryInterface
	// Informers are shared by all terms and started by the wiring: call Warm
	// before starting them. Required.
	Informers informers.SharedInformerFactory
	// Bundles holds the ConfigMaps called rootca.Name, of all namespaces. Required.
	Bundles cache.SharedIndexInformer
	// Definitions holds all CustomResourceDefinitions; nil: the API has none.
	Definitions cache.SharedIndexInformer
	// APIServices holds all of them; nil: the API has none.
	APIServices cache.SharedIndexInformer
	// Monitors are the informers of every kind that may own or be owned, read
	// by the garbage collector. Objects may be whole or metadata only. Called
	// again every few seconds, so that new kinds join. Required.
	Monitors func() map[schema.GroupVersionResource]cache.SharedIndexInformer
	// Liveness tells of sessions and gossip; nil judges nodes by Lease alone.
	Liveness nodelifecycle.Liveness
	// PodCIDR is the IPv4 range of all pods; zero means DefaultPodCIDR. Each
	// node gets a /24 of it.
	PodCIDR netip.Prefix
	// RootCA is the PEM bundle published in every namespace; empty publishes
	// nothing.
	RootCA []byte
	// ClusterInfo is the kubeconfig, without a user, that kube-public/cluster-info begins
	// with; empty leaves that ConfigMap to the administrator.
	ClusterInfo []byte
	// Objects are what every cluster has beside its namespaces; nil leaves them to others.
	Objects *clusterobjects.Objects
	// Aggregator registers APIServices and says which are available; same fence. Required.
	Aggregator aggregator.Interface
	// LocalAPIs are the APIServices of the built-in group versions.
	LocalAPIs []*apiregistrationv1.APIService
	// Prober asks the servers behind APIServices; nil leaves APIServices alone.
	Prober apiservice.Prober
	// Signer signs approved certificate signing requests; nil leaves them to others.
	Signer certificates.Signer
	// Tokens signs tokens of service accounts that are kept in Secrets; nil leaves them to others.
	Tokens legacytoken.Tokens
	// Logger receives what the controllers have to say; nil means silence.
	Logger *slog.Logger
}

func (cfg Config) withDefaults() (Config, error) {
	if cfg.Client == nil || cfg.Extensions == nil || cfg.Aggregator == nil || cfg.Metadata == nil || cfg.Discovery == nil || cfg.Informers == nil || cfg.Bundles == nil || cfg.Monitors == nil {
		return cfg, ErrConfig
	}
	if !cfg.PodCIDR.IsValid() {
		cfg.PodCIDR = netip.MustParsePrefix(DefaultPodCIDR)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return cfg, nil
}
