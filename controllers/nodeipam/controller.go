package nodeipam

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// nodeBits is the length of a node's prefix: 254 pod addresses.
const nodeBits = 24

// ErrFull says that every part of the range belongs to some node.
var ErrFull = errors.New("no free pod address range")

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	// PodCIDR is the IPv4 range of all pods, at most /24.
	PodCIDR netip.Prefix
	Events  record.EventRecorder
	Logger  *slog.Logger
}

// controller is one term of the controller. Its one worker alone uses given.
type controller struct {
	cfg Config
	// given are ranges written in this term, by node uid.
	given map[string]netip.Prefix
}

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Nodes().Informer()
	return nil
}

// Run allocates until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	if !cfg.PodCIDR.Addr().Is4() || cfg.PodCIDR.Bits() > nodeBits {
		return fmt.Errorf("nodeipam: %s is not an IPv4 range of at least /%d", cfg.PodCIDR, nodeBits)
	}
	c := &controller{cfg: cfg, given: map[string]netip.Prefix{}}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "nodeipam",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{{Informer: cfg.Informers.Core().V1().Nodes().Informer(), Map: c.nodeChanged}},
		Workers:   1, // two would choose the same range
		Logger:    cfg.Logger,
	})
}

// nodeChanged maps a node to itself, and a deleted one to those that wait for a
// range.
func (c *controller) nodeChanged(_, after metav1.Object) []reconcile.Key {
	if after != nil {
		return []reconcile.Key{reconcile.KeyOf(after)}
	}
	var keys []reconcile.Key
	nodes, err := c.nodes()
	if err != nil {
		return nil
	}
	for _, n := range nodes {
		if n.Spec.PodCIDR == "" {
			keys = append(keys, reconcile.KeyOf(n))
		}
	}
	return keys
}

func (c *controller) nodes() ([]*corev1.Node, error) {
	return c.cfg.Informers.Core().V1().Nodes().Lister().List(labels.Everything())
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node, err := c.cfg.Informers.Core().V1().Nodes().Lister().Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || node.Spec.PodCIDR != "" || node.DeletionTimestamp != nil {
		return 0, err
	}
	nodes, err := c.nodes()
	if err != nil {
		return 0, err
	}
	prefix, ok := c.given[string(node.UID)]
	if !ok {
		prefix, err = choose(c.cfg.PodCIDR, c.used(nodes))
	}
	if errors.Is(err, ErrFull) {
		c.cfg.Events.Eventf(node, corev1.EventTypeWarning, "CIDRNotAvailable", "Node %s has no pod address range: all of %s is taken", node.Name, c.cfg.PodCIDR)
		return 0, reconcile.Terminal(err)
	}
	next := node.DeepCopy()
	next.Spec.PodCIDR, next.Spec.PodCIDRs = prefix.String(), []string{prefix.String()}
	c.given[string(node.UID)] = prefix
	_, err = c.cfg.Client.CoreV1().Nodes().Update(reconcile.WithCause(ctx, node), next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// used are the ranges of all nodes; it also forgets what was given to nodes
// that are gone or whose range the cache shows by now.
func (c *controller) used(nodes []*corev1.Node) map[netip.Prefix]bool {
	used, waiting := map[netip.Prefix]bool{}, map[string]bool{}
	for _, n := range nodes {
		waiting[string(n.UID)] = n.Spec.PodCIDR == ""
		for _, s := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
			if p, err := netip.ParsePrefix(s); err == nil {
				used[p.Masked()] = true
			}
		}
	}
	for uid, p := range c.given {
		if waiting[uid] {
			used[p] = true
		} else {
			delete(c.given, uid)
		}
	}
	return used
}

// choose is the first part of the range that overlaps none in use. It is pure.
func choose(all netip.Prefix, used map[netip.Prefix]bool) (netip.Prefix, error) {
	base := all.Masked().Addr().As4()
	first := binary.BigEndian.Uint32(base[:])
	for i := range uint32(1) << (nodeBits - all.Bits()) {
		var addr [4]byte
		binary.BigEndian.PutUint32(addr[:], first+i<<(32-nodeBits))
		p := netip.PrefixFrom(netip.AddrFrom4(addr), nodeBits)
		if !used[p] && !overlapsOther(p, used) {
			return p, nil
		}
	}
	return netip.Prefix{}, ErrFull
}

// overlapsOther also keeps clear of ranges of other sizes, which an
// administrator may have set by hand.
func overlapsOther(p netip.Prefix, used map[netip.Prefix]bool) bool {
	for u := range used {
		if u.Bits() != nodeBits && u.Overlaps(p) {
			return true
		}
	}
	return false
}
