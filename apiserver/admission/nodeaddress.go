package admission

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// addressFromPool is the condition of a Service whose address is from the pool of load balancers.
const addressFromPool = "setpoint.io/AddressFromPool"

var errNoUnicast = errors.New("it is no address at which others reach a machine")

// judgeAddresses: Services of the type LoadBalancer get the addresses of nodes, and every node leads what is sent there to them. So no node
// says that it has what is another's: a node's that is Ready, a pod's, a Service's. What it had before stays: an address that it tells
// again is not judged again. A machine that comes back under another name has the address once the old Node is not Ready, or gone.
// A server may be on the node's machine: a server's address is told from that machine only.
func (r nodeRestriction) judgeAddresses(ctx context.Context, node string, a admission.Attributes) error {
	object, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	old, _ := a.GetOldObject().(*corev1.Node)
	told := addressesOf(object)
	if old != nil {
		told = slices.DeleteFunc(told, func(text string) bool { return slices.Contains(addressesOf(old), text) })
	}
	for _, text := range told {
		if err := r.judgeAddress(ctx, node, text); err != nil {
			return fmt.Errorf("node %q is not allowed to say that the address %q is its own: %w", node, text, err)
		}
	}
	return nil
}

// addressesOf are those of a Node at which traffic is sent to its machine.
func addressesOf(n *corev1.Node) (all []string) {
	for _, a := range n.Status.Addresses {
		if a.Type == corev1.NodeInternalIP || a.Type == corev1.NodeExternalIP {
			all = append(all, a.Address)
		}
	}
	return all
}

func (r nodeRestriction) judgeAddress(ctx context.Context, node, text string) error {
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap().WithZone("")
	switch {
	case err != nil:
		return err
	case ip.IsLoopback(): // of a machine that runs its server too; nothing else is led there
		return nil
	case !ip.IsGlobalUnicast():
		return errNoUnicast
	}
	if err := r.judgeServers(ctx, ip); err != nil {
		return err
	}
	nodes, err := r.nodes.all(ctx)
	if err != nil {
		return err
	}
	for _, other := range nodes {
		if inPodsOf(other, ip) {
			return fmt.Errorf("pods of node %q have addresses there", other.Name)
		}
		if other.Name != node && nodeIsReady(other) && has(addressesOf(other), ip) {
			return fmt.Errorf("node %q has it, and is Ready", other.Name)
		}
	}
	return r.judgeServices(ctx, ip)
}

// judgeServers: who is on a server's machine asks it from one of that machine's addresses, or over loopback.
func (r nodeRestriction) judgeServers(ctx context.Context, ip netip.Addr) error {
	m, ok := r.book.ServerAt(ip)
	from, remote := auth.ClientAddress(ctx)
	if !ok || !remote || from.IsLoopback() || slices.Contains(m.Addresses, from) {
		return nil
	}
	return fmt.Errorf("%s has it, and the request comes from %s", m.Name, from)
}

// judgeServices: cluster addresses, and those of the pool of load balancers, are Services'.
func (r nodeRestriction) judgeServices(ctx context.Context, ip netip.Addr) error {
	ranges, err := r.ranges.all(ctx)
	if err != nil {
		return err
	}
	for _, of := range ranges {
		if isIn(ip, of.Spec.CIDRs) {
			return fmt.Errorf("Services of ServiceCIDR %q have addresses there", of.Name)
		}
	}
	services, err := r.services.all(ctx)
	if err != nil {
		return err
	}
	for _, s := range services {
		var pooled []string
		for _, i := range s.Status.LoadBalancer.Ingress {
			pooled = append(pooled, i.IP)
		}
		if meta.IsStatusConditionTrue(s.Status.Conditions, addressFromPool) && has(pooled, ip) {
			return fmt.Errorf("Service %s/%s has it", s.Namespace, s.Name)
		}
	}
	return nil
}

func has(texts []string, ip netip.Addr) bool {
	return slices.ContainsFunc(texts, func(text string) bool {
		other, err := netip.ParseAddr(text)
		return err == nil && other.Unmap() == ip
	})
}

func isIn(ip netip.Addr, ranges []string) bool {
	return slices.ContainsFunc(ranges, func(text string) bool {
		p, err := netip.ParsePrefix(text)
		return err == nil && p.Contains(ip)
	})
}

func nodeIsReady(n *corev1.Node) bool {
	return slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}
