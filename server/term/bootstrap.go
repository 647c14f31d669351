package term

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac/policy"
	"github.com/setpoint-io/setpoint/controllers/clusterobjects"
	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/servicerange"
	"github.com/setpoint-io/setpoint/server/inprocess"
	"github.com/setpoint-io/setpoint/server/kubernetesservice"
	"github.com/setpoint-io/setpoint/server/serverpods"
)

// bootstrapRetryInterval is how long a failed bootstrap waits for the next try.
const bootstrapRetryInterval = time.Second

// SystemNamespaces are those that every cluster has.
var SystemNamespaces = []string{metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic, corev1.NamespaceNodeLease}

// bootstrap makes what the loops need before they begin, and says where pods and Services get their
// addresses from; false: ctx has ended first. The ranges of Services are there before the namespaces, so that no Service
// is made without them.
func (c *Config) bootstrap(ctx context.Context, client kubernetes.Interface, term uint64) (pods podnetwork.Network, ready bool) {
	var write bool
	ready = c.until(ctx, "default roles", func(ctx context.Context) error { return c.ensureRoles(ctx, term) }) &&
		c.until(ctx, "pod network", func(ctx context.Context) (err error) {
			pods, write, err = c.judgePodNetwork(ctx, client)
			return err
		}) &&
		c.until(ctx, "ranges of Services", func(ctx context.Context) error {
			return clusterobjects.EnsureServiceCIDR(ctx, client, servicerange.Texts(pods.Services, pods.Services6))
		}) &&
		c.until(ctx, "namespaces", func(ctx context.Context) error { return ensureNamespaces(ctx, client) }) &&
		(!write || c.until(ctx, "pod network", func(ctx context.Context) error { return podnetwork.Write(ctx, client, pods) }))
	return pods, ready
}

// until repeats what may fail for a moment, such as a write during an election.
// It returns false when ctx ended first.
func (c *Config) until(ctx context.Context, what string, do func(context.Context) error) bool {
	for {
		err := do(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		c.Logger.Warn("not there yet", "what", what, "err", err)
		if !process.Sleep(ctx, bootstrapRetryInterval) {
			return false
		}
	}
}

// ensureNamespaces makes the namespaces that every cluster has; the control loops
// write to some of them.
func ensureNamespaces(ctx context.Context, client kubernetes.Interface) error {
	for _, name := range SystemNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
		_, err := client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("namespace %s: %w", name, err)
		}
	}
	return nil
}

// ensureRoles makes the default roles. The library that does it passes no context:
// without one of ours a server that stops alone would wait for a majority.
func (c *Config) ensureRoles(ctx context.Context, term uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	config := c.Door.Config(inprocess.Server, term)
	config.Transport = apiserver.EndingWith(ctx, config.Transport)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	return policy.Reconcile(ctx, client)
}

// publishAPI keeps the Service by which pods find the API, until ctx ends.
func (c *Config) publishAPI(ctx context.Context, client kubernetes.Interface, address netip.Addr) error {
	servers := func() (all []kubernetesservice.Server) {
		gossiping := c.Gossiping()
		for _, s := range c.Servers() {
			all = append(all, kubernetesservice.Server{Name: s.Name, Endpoint: s.Endpoint, Addresses: s.Addresses, Gossip: gossiping[s.Name]})
		}
		return all
	}
	env := reconcile.Env{Client: client, Caches: c.Caches, Numbers: c.Numbers, Clock: c.Clock, Logger: c.Logger}
	return kubernetesservice.New(servers, address, c.Port).Start(ctx, env)
}

// keepServerPods keeps the pods under which the parts of servers are seen, until ctx ends.
func (c *Config) keepServerPods(ctx context.Context, client kubernetes.Interface) error {
	env := reconcile.Env{Client: client, Caches: c.Caches, Numbers: c.Numbers, Clock: c.Clock, Logger: c.Logger}
	return serverpods.New(c.ServerPods).Start(ctx, env)
}
