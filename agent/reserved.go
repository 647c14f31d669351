package agent

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// keepBook keeps the book of what no Service, Gateway or endpoint takes of machines. known tell when it knows all that there is.
func (a *agent) keepBook(everywhere, nodes informers.SharedInformerFactory) (known []cache.InformerSynced) {
	if a.Services == nil && !a.Ingress.Any() {
		return nil // nobody asks
	}
	follow := func(informer cache.SharedIndexInformer, look func(o any, gone bool)) {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { look(o, false) }, UpdateFunc: func(_, o any) { look(o, false) }, DeleteFunc: func(o any) { look(o, true) },
		})
		if err == nil { // it fails only where the informer has stopped already
			known = append(known, handler.HasSynced)
		}
	}
	follow(nodes.Core().V1().Nodes().Informer(), a.reserveNode)
	follow(everywhere.Discovery().V1().EndpointSlices().Informer(), a.reserveServers)
	return known
}

func (a *agent) reserveNode(o any, gone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	n, ok := o.(*corev1.Node)
	switch {
	case ok && gone:
		a.book.SetNode(n.Name, nil)
	case ok:
		a.book.SetNode(n.Name, reserved.OfNode(n))
	}
}

// reserveServers: a slice that is gone comes back, and until then the servers are where they were.
func (a *agent) reserveServers(o any, gone bool) {
	if slice, ok := o.(*discoveryv1.EndpointSlice); ok && !gone && len(reserved.ServersOf(slice)) > 0 {
		a.book.SetServers(reserved.OfServers(slice))
	}
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
	return told.String()
}
