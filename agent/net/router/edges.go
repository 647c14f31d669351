package router

import (
	"context"
	"sync"

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
	told := &whoIsTold{open: open, tell: r.Listening}
	r.closeShared = func() { told.end(closeAll, r.Ports) }
	for port, secure := range r.Ports.byNumber() {
		r.listening.Go(func() { r.listen(open, port, secure, told.about) })
	}
}

// whoIsTold tells of ports only as long as they are to be open: requests under way hold an end up, and the next opening must not be
// contradicted by what ends late.
type whoIsTold struct {
	open context.Context
	tell func(port int, err error) // nil: nobody is told
	mu   sync.Mutex
}

func (l *whoIsTold) about(port int, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.tell != nil && l.open.Err() == nil {
		l.tell(port, err)
	}
}

// end closes all, and has nobody blamed any more for a port that this node does not want.
func (l *whoIsTold) end(closeAll func(), ports Ports) {
	l.mu.Lock()
	defer l.mu.Unlock()
	closeAll()
	for port := range ports.byNumber() {
		if l.tell != nil {
			l.tell(port, nil)
		}
	}
}
