package reserved

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/tools/cache"
)

// Follow takes what Nodes and slices say from informers, of which none may have stopped. known tell when all that is there was taken.
func (b *Book) Follow(nodes, slices cache.SharedIndexInformer) (known []cache.InformerSynced) {
	for informer, look := range map[cache.SharedIndexInformer]func(o any, gone bool){nodes: b.seeNode, slices: b.seeSlice} {
		handler, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: func(o any) { look(o, false) }, UpdateFunc: func(_, o any) { look(o, false) }, DeleteFunc: func(o any) { look(o, true) },
		})
		if err == nil { // it fails only where the informer has stopped already
			known = append(known, handler.HasSynced)
		}
	}
	return known
}

func (b *Book) seeNode(o any, gone bool) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	n, ok := o.(*corev1.Node)
	switch {
	case ok && gone:
		b.SetNode(n.Name, nil)
	case ok:
		b.SetNode(n.Name, OfNode(n))
	}
}

// seeSlice: a slice that is gone comes back, and until then the servers are where they were.
func (b *Book) seeSlice(o any, gone bool) {
	if slice, ok := o.(*discoveryv1.EndpointSlice); ok && !gone && len(ServersOf(slice)) > 0 {
		b.SetServers(OfServers(slice))
	}
}
