package router

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/internal/reserved"
)

// followEdges looks when another node may serve, or this one may no more.
func (r *router) followEdges() {
	if r.Nodes == nil {
		return
	}
	look := func(before, after any) {
		was, _ := before.(*corev1.Node)
		is, _ := after.(*corev1.Node)
		if reserved.EdgesChanged(was, is) {
			r.look()
		}
	}
	// It fails only where the informer has stopped already.
	_, _ = r.Nodes.Core().V1().Nodes().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { look(nil, o) }, UpdateFunc: look, DeleteFunc: func(any) { r.look() },
	})
}

// mayServe tells whether this node may.
func (r *router) mayServe() bool {
	if r.Nodes == nil {
		return true
	}
	lister := r.Nodes.Core().V1().Nodes().Lister()
	all, _ := lister.List(labels.Everything()) // a cache cannot fail
	self, err := lister.Get(r.NodeName)
	if err != nil {
		self = nil
	}
	return reserved.EdgesOf(all).May(self)
}

// openShared opens the ports at which Ingresses are served, or closes them. One that closes answers what is under way.
func (r *router) openShared(ctx context.Context, may bool) {
	if open := r.closeShared != nil; open == may {
		return
	}
	if !may {
		r.Logger.Info("other nodes serve Ingresses and Gateways, this one does not", "label", reserved.EdgeLabel)
		r.closeShared()
		r.closeShared = nil
		return
	}
	open, closeAll := context.WithCancel(ctx)
	r.closeShared = closeAll
	for port, secure := range r.Ports.byNumber() {
		r.listening.Go(func() {
			r.listen(open, port, secure, r.Listening)
			if r.Listening != nil && ctx.Err() == nil {
				r.Listening(port, nil) // who has the port is nobody's problem now
			}
		})
	}
}
