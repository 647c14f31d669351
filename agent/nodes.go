package agent

import (
	"net"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

// nodeWatch follows the Nodes: our own for its pod CIDR and labels, all of
// them for the routes.
type nodeWatch struct {
	self     string
	setPeers func([]Peer)
	lister   corelisters.NodeLister
	cidr     chan string // holds our pod CIDR once it is known
	look     func()      // called when our Node may not say what it should

	mu    sync.Mutex
	peers []Peer // as last handed to setPeers
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

func (w *nodeWatch) changed(obj any) {
	if n, ok := obj.(*corev1.Node); ok && n.Name == w.self {
		w.own(n)
	}
	if w.setPeers != nil {
		w.publish()
	}
}

// own looks at our Node. If it is not Ready, the servers may have given us up
// and not know yet that we are back: only we can say so.
func (w *nodeWatch) own(n *corev1.Node) {
	if n.Spec.PodCIDR != "" {
		select {
		case w.cidr <- n.Spec.PodCIDR:
		default: // known already; a pod CIDR never changes
		}
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
	nodes, err := w.lister.List(labels.Everything())
	if err != nil {
		return
	}
	peers := peersOf(w.self, nodes)
	if w.peers == nil || !slices.EqualFunc(peers, w.peers, Peer.equal) {
		w.peers = peers
		w.setPeers(peers)
	}
}

func (p Peer) equal(q Peer) bool {
	return p.Node == q.Node && p.PodCIDR == q.PodCIDR && p.NodeIP.Equal(q.NodeIP)
}

// peersOf lists the other nodes that have both a pod CIDR and an address, by name.
func peersOf(self string, nodes []*corev1.Node) []Peer {
	peers := []Peer{}
	for _, n := range nodes {
		if ip := internalIP(n); n.Name != self && n.Spec.PodCIDR != "" && ip != nil && !isSimulated(n) {
			peers = append(peers, Peer{Node: n.Name, PodCIDR: n.Spec.PodCIDR, NodeIP: ip})
		}
	}
	slices.SortFunc(peers, func(a, b Peer) int { return strings.Compare(a.Node, b.Node) })
	return peers
}

func internalIP(n *corev1.Node) net.IP {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP {
			return net.ParseIP(a.Address)
		}
	}
	return nil
}

// allocatable is what our Node offers; nothing before it is known.
func (w *nodeWatch) allocatable() corev1.ResourceList {
	n, err := w.lister.Get(w.self)
	if err != nil {
		return nil
	}
	return n.Status.Allocatable
}
