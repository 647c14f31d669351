package agent

import (
	"context"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/net/policy"
	"github.com/setpoint-io/setpoint/agent/net/services"
)

// translateServices follows the Services if something shall lead to them. known tell when the book is complete.
func (a *agent) translateServices(
	ctx context.Context, children *sync.WaitGroup, everywhere, nodes informers.SharedInformerFactory, known []cache.InformerSynced,
) {
	if a.Services == nil {
		return
	}
	recorder := events.NewRecorder(ctx, a.Client, a.NodeName)
	warn := func(service types.NamespacedName, reason, message string) {
		about := &corev1.ObjectReference{APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name}
		recorder.Event(about, corev1.EventTypeWarning, reason, message)
	}
	run, thing := services.Watch(services.Config{
		NodeName: a.NodeName, Informers: everywhere, Nodes: nodes, Network: a.Services, Announce: a.Announce,
		Logger:   a.Logger,
		Reserved: a.book, Known: known,
		Refused: func(service types.NamespacedName, why string) { warn(service, "Reserved", why) },
		HealthFailed: func(service types.NamespacedName, port uint16, err error) {
			warn(service, "FailedToStartServiceHealthcheck",
				fmt.Sprintf("node %s failed to start healthcheck %q on port %d: %v", a.NodeName, service, port, err))
		},
	})
	a.Upkeep.Hold(thing)
	children.Go(func() { run(ctx) })
}

// enforcePolicies follows NetworkPolicies if the network enforces them.
func (a *agent) enforcePolicies(ctx context.Context, children *sync.WaitGroup) {
	if a.Policies == nil {
		return
	}
	watch := policy.New(policy.Config{Client: a.Client, Network: a.Policies, Logger: a.Logger})
	a.Policies.Admit(watch.Admit)
	a.Upkeep.Hold(watch.Thing())
	children.Go(func() { watch.Run(ctx) })
}
