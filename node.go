package setpoint

import (
	"context"
	"crypto/tls"
	"net"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Node is what a real node of a Cluster is run with; see agent/host.
type Node struct {
	Name, DataDir string
	// IP is the machine's, or loopback if it has no other.
	IP net.IP
	// Loopback is where servers reach the agent: it opens no port to others.
	Loopback net.IP
	// ServerTLS is what the agent serves with; it renews itself.
	ServerTLS *tls.Config
	Client    kubernetes.Interface
	// Gateways reads the objects of the Gateway API.
	Gateways dynamic.Interface
}

// RunNode hands run what a real node of this name needs, until ctx ends. The library links no
// container runtime: run is agent/host's. The Cluster needs OpenToPods.
func (c *Cluster) RunNode(ctx context.Context, name string, run func(ctx context.Context, n Node) error) error {
	serverTLS, keep, err := c.serving(name)
	if err != nil {
		return err
	}
	client, err := c.client(trust.NodeUser(name), trust.GroupNodes)
	if err != nil {
		return err
	}
	gateways, err := dynamic.NewForConfig(c.configOf(trust.NodeUser(name), trust.GroupNodes))
	if err != nil {
		return err
	}
	c.admitPods(ctx, client)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return keep(ctx) })
	group.Go(func() error {
		own := net.ParseIP(loopback)
		n := Node{Name: name, DataDir: c.config.DataDir, IP: own, Loopback: own, ServerTLS: serverTLS, Client: client, Gateways: gateways}
		if ip := net.ParseIP(c.machine); ip != nil {
			n.IP = ip
		}
		return run(ctx, n)
	})
	return group.Wait()
}

// serving is what the node serves with, made anew with each start; keep renews it until
// its context ends. Its client needs no certificate: it has no socket.
func (c *Cluster) serving(name string) (config *tls.Config, keep func(context.Context) error, err error) {
	authority, err := c.trust.CA.NodeServing()
	if err != nil {
		return nil, nil, err
	}
	live := new(trust.Live).By(c.Clock().Now)
	renew := func() error {
		id, err := authority.IssueNodeServing(name, c.trust.CA, c.Clock().Now())
		if err != nil {
			return err
		}
		return live.Renew(id)
	}
	if err := renew(); err != nil {
		return nil, nil, err
	}
	config, err = live.AgentConfig(c.trust.CA.CertPEM())
	return config, func(ctx context.Context) error { return c.keepServing(ctx, live, renew) }, err
}

// keepServing renews what a node serves with in time, and when the cluster's authorities are others.
func (c *Cluster) keepServing(ctx context.Context, live *trust.Live, renew func() error) error {
	for by := c.trust.CA.Moment(); ; {
		replaced := c.trust.CA.Replaced()
		if now := c.trust.CA.Moment(); now != by || live.NeedsRenewal(c.Clock().Now()) {
			if err := renew(); err != nil {
				return err
			}
			by = now
		}
		if !c.awaitRenewal(ctx, replaced) {
			return nil
		}
	}
}

// awaitRenewal returns when certificates are to be looked at again, or false when ctx ends.
func (c *Cluster) awaitRenewal(ctx context.Context, replaced <-chan struct{}) bool {
	timer := c.Clock().NewTimer(trust.RenewInterval)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-replaced:
	case <-timer.C():
	}
	return true
}

// admitPods opens the servers to pods of the network in force, which another start of this cluster may have chosen.
func (c *Cluster) admitPods(ctx context.Context, client kubernetes.Interface) {
	n, found, err := podnetwork.Read(ctx, client)
	if err != nil {
		c.config.Logger.Warn("pods may not reach the API", "err", err)
	}
	for _, l := range c.forPods {
		if found {
			l.Admit(n.CIDR)
		}
	}
}
