package policy

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/net/policy/plan"
)

// Sandbox is a pod on the network of this node.
type Sandbox struct {
	Namespace string
	UID       types.UID
	// Labels are the pod's, and maybe some of the runtime's, as they were when it was made.
	Labels map[string]string
	// Addresses are one, or one of each family, that of IPv4 first.
	Addresses []netip.Addr
}

// runtimeLabels begin the names of labels that a kubelet adds for its runtime.
const runtimeLabels = "io.kubernetes."

// planned is a pod here as far as nothing newer is known of it.
func (s Sandbox) planned() *plan.Pod {
	own := labels.Set{}
	for key, value := range s.Labels {
		if !strings.HasPrefix(key, runtimeLabels) {
			own[key] = value
		}
	}
	return &plan.Pod{Namespace: s.Namespace, Labels: own, Addresses: s.Addresses, Here: true}
}

// slimPod keeps what policies ask of a pod. What it is handed may be shared, so it makes another.
func slimPod(obj any) (any, error) {
	p, ok := obj.(*corev1.Pod)
	if !ok {
		return obj, nil
	}
	slim := &corev1.Pod{
		ObjectMeta: slimMeta(p.ObjectMeta),
		Spec:       corev1.PodSpec{HostNetwork: p.Spec.HostNetwork},
		Status:     corev1.PodStatus{Phase: p.Status.Phase, PodIPs: p.Status.PodIPs},
	}
	// A sidecar is an init container, and has ports that others may reach.
	for _, c := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		for _, port := range c.Ports {
			if port.Name != "" {
				slim.Spec.Containers = append(slim.Spec.Containers, corev1.Container{Ports: []corev1.ContainerPort{port}})
			}
		}
	}
	return slim, nil
}

func slimNamespace(obj any) (any, error) {
	n, ok := obj.(*corev1.Namespace)
	if !ok {
		return obj, nil
	}
	return &corev1.Namespace{ObjectMeta: slimMeta(n.ObjectMeta)}, nil
}

func slimMeta(m metav1.ObjectMeta) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion, Labels: m.Labels}
}

// plannedPod is what a slim pod means to policies.
func plannedPod(p *corev1.Pod) *plan.Pod {
	pod := &plan.Pod{Namespace: p.Namespace, Labels: p.Labels, Addresses: addressesOf(p.Status.PodIPs)}
	for _, c := range p.Spec.Containers {
		for _, port := range c.Ports {
			pod.Ports = append(pod.Ports, plan.NamedPort{
				Name: port.Name, Protocol: plan.Protocol(port.Protocol), Number: uint16(port.ContainerPort),
			})
		}
	}
	return pod
}

// Planned is what a pod of the API means to policies, which judge the pods of the cluster by nothing else; false: it has no
// address of its own.
func Planned(p *corev1.Pod) (pod *plan.Pod, ok bool) {
	pod = plannedPod(p)
	return pod, hasAddress(p) && len(pod.Addresses) > 0
}

// hasAddress is false for pods whose address is their node's, and for those that may have given theirs back.
func hasAddress(p *corev1.Pod) bool {
	return !p.Spec.HostNetwork && p.Status.Phase != corev1.PodSucceeded && p.Status.Phase != corev1.PodFailed
}

func addressesOf(ips []corev1.PodIP) (all []netip.Addr) {
	for _, ip := range ips {
		if address, err := netip.ParseAddr(ip.IP); err == nil && address.Zone() == "" {
			all = append(all, address.Unmap())
		}
	}
	return all
}

// here are the pods on the network of this node, by their first addresses: a new one takes them over from one that has ended.
type here map[netip.Addr]*known

// known is a pod here. Its labels are the newest that the API has shown; seen: it has shown some.
type known struct {
	Sandbox
	seen bool
	// since is when it was added: a pod is admitted a moment before the network shows it.
	since time.Time
}

func (h here) add(s Sandbox, now time.Time) { h[s.first()] = &known{Sandbox: s, since: now} }

// first is the address by which a pod is known; two pods that have it have all addresses in common.
func (s Sandbox) first() netip.Addr { return s.Addresses[0] }

// pods joins what the API says with what this node knows better: which pods are on its network. A pod may still run when the API
// has ended or deleted it.
func (h here) pods(all []*corev1.Pod) []*plan.Pod {
	own := h.byUID()
	pods := make([]*plan.Pod, 0, len(all)+len(h))
	for _, p := range all {
		pod := plannedPod(p)
		if sandboxes := own[p.UID]; len(sandboxes) > 0 {
			pod.Addresses, pod.Here = nil, true
			for _, k := range sandboxes {
				k.seen, k.Labels = true, p.Labels
				pod.Addresses = append(pod.Addresses, k.Addresses...)
			}
			delete(own, p.UID)
		} else if !hasAddress(p) || len(pod.Addresses) == 0 || h[pod.Addresses[0]] != nil {
			continue
		}
		pods = append(pods, pod)
	}
	for _, sandboxes := range own {
		for _, k := range sandboxes {
			pods = append(pods, k.planned())
		}
	}
	return pods
}

// byUID are the sandboxes of each pod, the newest first. There are several for a while after a pod was given a new one: the rules hold at
// the address of the former until the network says that it is gone, and at the new one before it is connected.
func (h here) byUID() map[types.UID][]*known {
	own := make(map[types.UID][]*known, len(h))
	for _, k := range h {
		own[k.UID] = append(own[k.UID], k)
	}
	for _, sandboxes := range own {
		slices.SortFunc(sandboxes, func(a, b *known) int {
			return cmp.Or(b.since.Compare(a.since), a.first().Compare(b.first()))
		})
	}
	return own
}

// prune forgets pods that are no longer on the network.
func (h here) prune(connected []Sandbox, now time.Time) {
	on := map[netip.Addr]types.UID{}
	for _, s := range connected {
		on[s.first()] = s.UID
	}
	for address, k := range h {
		if on[address] != k.UID && now.Sub(k.since) >= pruneInterval {
			delete(h, address)
		}
	}
}
