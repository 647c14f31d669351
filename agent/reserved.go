package agent

import (
	"sync"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// keepBook keeps the book of what no Service, Gateway or endpoint takes of machines, and tells where the servers are. known tell when it
// knows all that there is.
func (a *agent) keepBook(everywhere, nodes informers.SharedInformerFactory) (known []cache.InformerSynced) {
	if a.Services == nil && !a.Ingress.Any() {
		return nil // nobody asks
	}
	if a.SetServers != nil {
		var telling sync.Mutex // so that an older list never follows a newer one
		a.book.OnChange(func() {
			telling.Lock()
			defer telling.Unlock()
			a.SetServers(a.book.Servers())
		})
	}
	return a.book.Follow(nodes.Core().V1().Nodes().Informer(), everywhere.Discovery().V1().EndpointSlices().Informer())
}

// reserveRanges: addresses of Services and pods are the cluster's to give.
func (a *agent) reserveRanges(of PodNetwork) {
	a.book.SetRanges(
		reserved.Range{Prefix: of.Services, Of: reserved.Services}, reserved.Range{Prefix: of.Services6, Of: reserved.Services},
		reserved.Range{Prefix: of.Pods, Of: reserved.Pods}, reserved.Range{Prefix: of.Pods6, Of: reserved.Pods},
	)
}

// reservedAnnotation tells the others which ports this machine has that no field of its Node says.
func (a *agent) reservedAnnotation() string {
	var told reserved.Told
	if a.GossipPort != nil {
		told.Gossip = a.GossipPort()
	}
	told.Pods, told.Gateways = a.ports.told()
	return told.String()
}
