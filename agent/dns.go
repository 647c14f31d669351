package agent

import (
	"context"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/net/dns"
	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/internal/servicerange"
)

// namesTimeMax is how long no pod starts because its first question to the cluster's DNS would be lost: as long as a resolver waits
// before it asks again.
const namesTimeMax = 5 * time.Second

// serveNames answers the names of the cluster if this node has a network for that. wait returns when they are answered, by this node or
// by others, or after namesTimeMax.
func (a *agent) serveNames(
	ctx context.Context, children *sync.WaitGroup, everywhere informers.SharedInformerFactory,
) (wait func(context.Context)) {
	if a.DNS == nil {
		return func(context.Context) {}
	}
	answered := make(chan struct{})
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	run := dns.Watch(dns.Config{
		Informers: everywhere, Client: a.Client, Network: a.DNS, Domain: a.ClusterDomain, ResolvConf: a.resolvConf(),
		Kept: a.dirs().Names(), Settled: func() { close(answered) },
		Problem: func(about *corev1.ObjectReference, text string) {
			recorder.Event(about, corev1.EventTypeWarning, events.UnsupportedCorefile, text)
		},
		Listening: a.namesListening(ctx), Logger: a.Logger,
	})
	children.Go(func() { run(ctx) })
	return func(ctx context.Context) {
		select {
		case <-ctx.Done():
		case <-answered:
		case <-time.After(namesTimeMax):
			a.Logger.Warn("pods start although nobody answers names of the cluster")
		}
	}
}

// resolver says how pods ask for names: by the cluster's DNS, at the address that its range of Services gives it.
func (a *agent) resolver() resolvconf.Node {
	servers := a.ClusterDNS
	if of := a.podNetwork.Load(); a.Settings.ClusterDNS == nil && of != nil && of.Services.IsValid() {
		servers = []string{servicerange.DNS(of.Services).String()}
	}
	return resolvconf.Node{Servers: servers, Domain: a.ClusterDomain, Path: a.resolvConf()}
}

// resolvConf is the node's file of servers and search paths; "": none.
func (a *agent) resolvConf() string {
	if path := a.Settings.ResolvConf; path != nil {
		return *path
	}
	return resolvconf.DefaultPath
}
