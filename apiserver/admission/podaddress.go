package admission

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

var (
	errNoUnicastPod = errors.New("it is no address at which others reach a pod")
	errOtherNetwork = errors.New("the pod has the network of its node, and that says of no such address that it is its own")
	errOtherHost    = errors.New("the node does not say of that address that it is its own")
)

// judgePodAddresses: what is sent to a Service is led to the addresses of its pods, and the host firewalls of machines with such an address
// let it in. So no node says that its pod has what is another's: a machine's, another node's pods', a Service's. A runtime may have
// a network of its own, from which any other address is. What the pod had before stays.
func (r nodeRestriction) judgePodAddresses(ctx context.Context, node string, pod, old *corev1.Pod) error {
	ips, hosts := newOnes(podIPsOf(pod), podIPsOf(old)), newOnes(hostIPsOf(pod), hostIPsOf(old))
	if len(ips)+len(hosts) == 0 {
		return nil
	}
	own, _, err := r.nodes.get(ctx, "", node)
	if err == nil && r.judgeClaims(ctx, node, own, pod, ips, hosts) == nil {
		return nil
	}
	if own, _, err = r.nodes.newest(ctx, "", node); err != nil { // it may have told its addresses to another replica
		return err
	}
	return r.judgeClaims(ctx, node, own, pod, ips, hosts)
}

// judgeClaims has own as nil where there is no Node.
func (r nodeRestriction) judgeClaims(ctx context.Context, node string, own *corev1.Node, pod *corev1.Pod, ips, hosts []string) error {
	if own == nil {
		own = &corev1.Node{}
		own.Name = node
	}
	for _, text := range ips {
		if err := r.judgePodIP(ctx, own, pod.Spec.HostNetwork, text); err != nil {
			return fmt.Errorf("node %q is not allowed to say that its pod %s/%s has the address %q: %w", node, pod.Namespace, pod.Name, text, err)
		}
	}
	for _, text := range hosts {
		if told := addressesOf(own); len(told) > 0 && !hasText(told, text) {
			return fmt.Errorf("node %q is not allowed to say that the host of its pod %s/%s has the address %q: %w",
				node, pod.Namespace, pod.Name, text, errOtherHost)
		}
	}
	return nil
}

// judgePodIP: where a node has told no address yet, its pod's is judged as its own would be.
func (r nodeRestriction) judgePodIP(ctx context.Context, own *corev1.Node, hostNetwork bool, text string) error {
	told := addressesOf(own)
	switch {
	case !hostNetwork:
		return r.judgePodsOwn(ctx, own, text)
	case len(told) == 0:
		return r.judgeAddress(ctx, own.Name, text)
	case !hasText(told, text):
		return errOtherNetwork
	}
	return nil
}

// judgePodsOwn judges the address of a pod that has a network of its own.
func (r nodeRestriction) judgePodsOwn(ctx context.Context, own *corev1.Node, text string) error {
	ip, err := netip.ParseAddr(text)
	ip = ip.Unmap().WithZone("")
	switch {
	case err != nil:
		return err
	case inPodsOf(own, ip):
		return nil
	case !ip.IsGlobalUnicast():
		return errNoUnicastPod
	}
	if m, ok := r.book.ServerAt(ip); ok {
		return fmt.Errorf("%s has it", m.Name)
	}
	nodes, err := r.nodes.all(ctx)
	if err != nil {
		return err
	}
	for _, other := range nodes {
		if has(addressesOf(other), ip) {
			return fmt.Errorf("node %q has it", other.Name)
		}
		if other.Name != own.Name && inPodsOf(other, ip) {
			return fmt.Errorf("pods of node %q have addresses there", other.Name)
		}
	}
	return r.judgeServices(ctx, ip)
}

// inPodsOf reports whether the node's pods have their addresses there.
func inPodsOf(n *corev1.Node, ip netip.Addr) bool {
	return isIn(ip, n.Spec.PodCIDRs) || isIn(ip, []string{n.Spec.PodCIDR})
}

// newOnes are those that were not there before.
func newOnes(now, before []string) []string {
	return slices.DeleteFunc(now, func(text string) bool { return text == "" || slices.Contains(before, text) })
}

func podIPsOf(pod *corev1.Pod) []string {
	all := []string{pod.Status.PodIP}
	for _, ip := range pod.Status.PodIPs {
		all = append(all, ip.IP)
	}
	return all
}

func hostIPsOf(pod *corev1.Pod) []string {
	all := []string{pod.Status.HostIP}
	for _, ip := range pod.Status.HostIPs {
		all = append(all, ip.IP)
	}
	return all
}

// hasText is has for what may be no address.
func hasText(texts []string, text string) bool {
	ip, err := netip.ParseAddr(text)
	return err == nil && has(texts, ip.Unmap())
}
