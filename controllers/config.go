package controllers

import (
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/setpoint-io/setpoint/controllers/apiservice"
	"github.com/setpoint-io/setpoint/controllers/certificates"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/controllers/legacytoken"
	"github.com/setpoint-io/setpoint/controllers/loadbalancer"
	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// ErrConfig is returned by Run when a required field of the Env or the Config is missing.
var ErrConfig = errors.New("controllers: incomplete config")

// Settings are those of a cluster that control loops act by.
type Settings struct {
	// PodNetwork is where nodes get their ranges from; what is zero is what is in force, or as podnetwork.Default.
	PodNetwork podnetwork.Network
	// LoadBalancers is where Services of that type get their addresses from; zero: the nodes' addresses.
	LoadBalancers loadbalancer.Source
	// WithoutDNS leaves the Service kube-system/kube-dns to others.
	WithoutDNS bool
	// LocalVolumes makes the class setpoint-local, whose volumes are on the nodes' disks.
	LocalVolumes bool
}

// Config is what single controllers need of their server, beside the Env that all have.
type Config struct {
	// APIOnly runs only those that are part of upstream's API server.
	APIOnly bool
	// Only are the names of those that run beside them; nil: all.
	Only []string
	// Monitors are the informers of every kind that may own or be owned, read
	// by the garbage collector. Objects may be whole or metadata only. Called
	// again every few seconds, so that new kinds join. Required.
	Monitors func() map[schema.GroupVersionResource]cache.SharedIndexInformer
	// Liveness tells of sessions and gossip; nil judges nodes by Lease alone.
	Liveness nodelifecycle.Liveness
	// Settings are what the administrator decided.
	Settings
	// RootCA is the PEM bundle published in every namespace; empty publishes
	// nothing.
	RootCA []byte
	// ClusterInfo is the kubeconfig, without a user, that kube-public/cluster-info begins
	// with; empty leaves that ConfigMap to the administrator.
	ClusterInfo []byte
	// Objects are what every cluster has beside its namespaces; nil leaves them to others.
	Objects *clusterobjects.Objects
	// LocalAPIs are the APIServices of the built-in group versions.
	LocalAPIs []*apiregistrationv1.APIService
	// Prober asks the servers behind APIServices; nil leaves APIServices alone.
	Prober apiservice.Prober
	// Authority signs approved certificate signing requests; zero leaves them to others.
	Authority certificates.Authority
	// Begun is called when all controllers have been begun; nil: nobody wants to know.
	Begun func()
	// Tokens signs tokens of service accounts that are kept in Secrets; nil leaves them to others.
	Tokens legacytoken.Tokens
}

// runs says whether a controller is wanted.
func (cfg Config) runs(c reconcile.Controller) bool {
	return c.OfAPI || !cfg.APIOnly && (cfg.Only == nil || slices.Contains(cfg.Only, c.Name))
}

// withDefaults is the Config with defaults, if everything is there that is required.
func (cfg Config) withDefaults(env reconcile.Env) (Config, error) {
	clients := env.Client != nil && env.Extensions != nil && env.Aggregator != nil && env.Metadata != nil && env.Discovery != nil
	if !clients || env.Caches == nil || cfg.Monitors == nil {
		return cfg, ErrConfig
	}
	cfg.PodNetwork = cfg.PodNetwork.Or(podnetwork.Default())
	return cfg, nil
}
