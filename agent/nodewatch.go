package agent

import (
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/agent/net/network/plan"
)

// nodeWatch follows the Nodes: our own for its pod CIDR and labels, all of
// them for the routes.
type nodeWatch struct {
	self     string
	setPeers func(plan.Node, []plan.Node)
	lister   corelisters.NodeLister
	cidr     chan string // holds our newest pod CIDRs once they are known; filled by our one handler
	look     func()      // called when our Node may not say what it should

	mu      sync.Mutex
	network *PodNetwork // nil until it is known
	told    plan.Node   // our own as last handed to setPeers, with peers
	peers   []plan.Node
}

// newNodeWatch adds its handler to factory, which must not have started. Without
// SetPeers only our own Node is watched.
func newNodeWatch(cfg *Config, factory informers.SharedInformerFactory, look func()) *nodeWatch {
	w := &nodeWatch{self: cfg.NodeName, setPeers: cfg.SetPeers, cidr: make(chan string, 1), look: look}
	nodes := factory.Core().V1().Nodes()
	w.lister = nodes.Lister()
	handler := cache.ResourceEventHandlerFuncs{
		AddFunc:    w.changed,
		UpdateFunc: func(_, obj any) { w.changed(obj) },
		DeleteFunc: w.gone,
	}
	// Before the start these two cannot fail.
	_ = nodes.Informer().SetTransform(slim)
	_, _ = nodes.Informer().AddEventHandler(handler)
	_ = nodes.Informer().SetWatchErrorHandlerWithContext(w.refused)
	return w
}

// onlySelf restricts a factory to one node.
func onlySelf(name string) informers.SharedInformerOption {
	return informers.WithTweakListOptions(func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector(metav1.ObjectNameField, name).String()
	})
}

// slim drops what nobody here reads: images and managed fields are most of a
// Node. What it is handed may be shared, so it changes a copy of the top.
func slim(obj any) (any, error) {
	n, ok := obj.(*corev1.Node)
	if !ok {
		return obj, nil
	}
	slimmed := *n
	slimmed.ManagedFields, slimmed.Status.Images = nil, nil
	return &slimmed, nil
}

// refused looks at once when servers know this node no more: its Node was deleted, and it registers again.
func (w *nodeWatch) refused(ctx context.Context, r *cache.Reflector, err error) {
	if apierrors.IsUnauthorized(err) {
		w.look()
	}
	cache.DefaultWatchErrorHandler(ctx, r, err)
}

func (w *nodeWatch) changed(obj any) {
	if n, ok := obj.(*corev1.Node); ok && n.Name == w.self {
		w.own(n)
	}
	w.publish()
}

// believe says which ranges nodes can have. No peer is told before.
func (w *nodeWatch) believe(network PodNetwork) {
	w.mu.Lock()
	w.network = &network
	w.mu.Unlock()
	w.publish()
}

// own looks at our Node. If it is not Ready, the servers may have given us up
// and not know yet that we are back: only we can say so.
func (w *nodeWatch) own(n *corev1.Node) {
	if n.Spec.PodCIDR != "" {
		select { // what nobody has taken yet may be of a Node that is gone
		case <-w.cidr:
		default:
		}
		w.cidr <- podCIDRs(n)
	}
	if !isReady(n) {
		w.look()
	}
}

// gone looks even if it was another's Node: that costs one request.
func (w *nodeWatch) gone(any) {
	w.look()
	w.changed(nil)
}

func isReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// publish calls setPeers if the set differs from the last one.
func (w *nodeWatch) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.setPeers == nil || w.network == nil {
		return
	}
	nodes, err := w.lister.List(labels.Everything())
	if err != nil {
		return
	}
	own, peers := w.ownRanges(), peersOf(w.self, nodes, *w.network)
	if w.peers == nil || !own.Equal(w.told) || !slices.EqualFunc(peers, w.peers, plan.Node.Equal) {
		w.told, w.peers = own, peers
		w.setPeers(own, peers)
	}
}

// ownRanges are our pod CIDRs, with our address of IPv6; none before there are some of the network. w.mu is held.
func (w *nodeWatch) ownRanges() plan.Node {
	n := w.node()
	if n == nil || !w.network.has(podCIDRs(n)) {
		return plan.Node{}
	}
	own := plan.NodeOf(n)
	return plan.Node{Name: own.Name, PodCIDR: own.PodCIDR, PodCIDR6: own.PodCIDR6, IP6: own.IP6}
}

// node is our Node; nil before it is known.
func (w *nodeWatch) node() *corev1.Node {
	n, err := w.lister.Get(w.self)
	if err != nil {
		return nil
	}
	return n
}

// uid is our Node's; "" before it is known.
func (w *nodeWatch) uid() types.UID {
	n := w.node()
	if n == nil {
		return ""
	}
	return n.UID
}

// allocatable is what our Node offers; nothing before it is known.
func (w *nodeWatch) allocatable() corev1.ResourceList {
	n := w.node()
	if n == nil {
		return nil
	}
	return n.Status.Allocatable
}
