package nodeipam

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/podnetwork"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// wantedAnnotation has the ranges, with a comma between two, that a node asks for when it registers anew: its pods have
// addresses of them. It gets each if it is free.
const wantedAnnotation = "setpoint.io/former-pod-cidr"

// ErrFull says that every part of the range belongs to some node.
var ErrFull = errors.New("no free pod address range")

// New allocates ranges of the network.
func New(network podnetwork.Network) reconcile.Controller {
	return reconcile.Controller{
		Name:  "node-ipam-controller",
		Reads: []reconcile.Read{reconcile.Nodes},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, network) },
	}
}

// controller is one term of the controller. Its one worker alone uses given, full and fullAt.
type controller struct {
	env     *reconcile.Env
	network podnetwork.Network
	nodes   reconcile.Cache[*corev1.Node]
	// given are ranges written in this term, by node uid.
	given map[string][]netip.Prefix
	// full is that no range was free when freed was fullAt, which is so for all nodes until freed changes: it counts what may have freed one.
	full   error
	fullAt uint64
	freed  atomic.Uint64
}

func run(ctx context.Context, env *reconcile.Env, network podnetwork.Network) error {
	if err := network.Validate(); err != nil {
		return fmt.Errorf("nodeipam: %w", err)
	}
	c := &controller{env: env, network: network, nodes: reconcile.Nodes.From(env), given: map[string][]netip.Prefix{}}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "nodeipam",
		Queue:     "cidrallocator_node",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Changes(c.nodes, c.nodeChanged)},
		Workers:   1, // two would choose the same range
		Env:       env,
	})
}

// nodeChanged maps a node to itself, and a deleted one to those that wait for a
// range. A node may also get another range than the one that was meant for it.
func (c *controller) nodeChanged(before, after metav1.Object) []reconcile.Key {
	if was, ok := before.(*corev1.Node); ok && (after == nil || was.Spec.PodCIDR != after.(*corev1.Node).Spec.PodCIDR) {
		c.freed.Add(1)
	}
	if after != nil {
		return []reconcile.Key{reconcile.KeyOf(after)}
	}
	var keys []reconcile.Key
	nodes, err := c.nodes.List("", nil)
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

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	node, err := c.nodes.Get(key)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil || node.Spec.PodCIDR != "" || node.DeletionTimestamp != nil {
		return 0, err
	}
	ranges, err := c.rangesOf(node)
	if errors.Is(err, ErrFull) {
		c.env.Events.Eventf(node, corev1.EventTypeWarning, "CIDRNotAvailable", "Node %s has no pod address range: %v", node.Name, err)
		return 0, reconcile.Terminal(err)
	}
	if err != nil {
		return 0, err
	}
	next := node.DeepCopy()
	for _, p := range ranges {
		next.Spec.PodCIDRs = append(next.Spec.PodCIDRs, p.String())
	}
	next.Spec.PodCIDR = next.Spec.PodCIDRs[0]
	c.given[string(node.UID)] = ranges
	_, err = c.env.Client.CoreV1().Nodes().Update(reconcile.WithCause(ctx, node), next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, err
}

// rangesOf are the ranges that the node was given, or free ones. When there are none it looks at all nodes once, and not for each node
// that has none.
func (c *controller) rangesOf(node *corev1.Node) ([]netip.Prefix, error) {
	if ranges, ok := c.given[string(node.UID)]; ok {
		return ranges, nil
	}
	freed := c.freed.Load()
	if c.full != nil && c.fullAt == freed {
		return nil, c.full
	}
	nodes, err := c.nodes.List("", nil)
	if err != nil {
		return nil, err
	}
	ranges, err := c.choose(node, c.used(nodes))
	if c.full = nil; errors.Is(err, ErrFull) {
		c.full, c.fullAt = err, freed
	}
	return ranges, err
}

// choose are the node's ranges of each family that the network has, IPv4 first.
func (c *controller) choose(node *corev1.Node, used map[netip.Prefix]bool) ([]netip.Prefix, error) {
	four, err := c.chooseOf(node, c.network.CIDR, c.network.NodeMaskSize, used)
	if err != nil || !c.network.IsDual() {
		return []netip.Prefix{four}, err
	}
	six, err := c.chooseOf(node, c.network.CIDR6, c.network.NodeMaskSize6, used)
	return []netip.Prefix{four, six}, err
}

// chooseOf is the range of all that the node had before, if it is free, or the first free one.
func (c *controller) chooseOf(node *corev1.Node, all netip.Prefix, bits int, used map[netip.Prefix]bool) (netip.Prefix, error) {
	for text := range strings.SplitSeq(node.Annotations[wantedAnnotation], ",") {
		if former, ok := c.network.Range(text); ok && all.Contains(former.Addr()) && !used[former] {
			return former, nil
		}
	}
	return choose(all, bits, used)
}

// used are the ranges of all nodes that are of the network: another takes nothing, or whoever
// wrote it could leave nothing for the rest. It also forgets what was given to nodes
// that are gone or whose range the cache shows by now.
func (c *controller) used(nodes []*corev1.Node) map[netip.Prefix]bool {
	used, waiting := map[netip.Prefix]bool{}, map[string]bool{}
	for _, n := range nodes {
		waiting[string(n.UID)] = n.Spec.PodCIDR == ""
		for _, s := range append([]string{n.Spec.PodCIDR}, n.Spec.PodCIDRs...) {
			if p, ok := c.network.Range(s); ok {
				used[p] = true
			}
		}
	}
	for uid, ranges := range c.given {
		if !waiting[uid] {
			delete(c.given, uid)
			continue
		}
		for _, p := range ranges {
			used[p] = true
		}
	}
	return used
}

// choose is the first part of the range, with a prefix of bits bits, that is not in use. It is pure.
func choose(all netip.Prefix, bits int, used map[netip.Prefix]bool) (netip.Prefix, error) {
	for i := range uint32(1) << (bits - all.Bits()) {
		if p := part(all, bits, i); !used[p] {
			return p, nil
		}
	}
	return netip.Prefix{}, fmt.Errorf("%w: all of %s is taken", ErrFull, all)
}

// part is the i-th part of the range; there are at most 2^16.
func part(all netip.Prefix, bits int, i uint32) netip.Prefix {
	addr := all.Masked().Addr().AsSlice()
	free := len(addr)*8 - bits
	rest := i << (free % 8)
	for at := len(addr) - 1 - free/8; rest > 0; at-- {
		addr[at] |= byte(rest)
		rest >>= 8
	}
	base, _ := netip.AddrFromSlice(addr)
	return netip.PrefixFrom(base, bits)
}
