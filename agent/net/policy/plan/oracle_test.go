package plan

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// oracle reads the specification once more, packet by packet and without sets. An end that is no pod has
// addresses only; family chooses among them.
func oracle(w World, from, to *Pod, family int, protocol uint8, port uint16) bool {
	if from.Addresses[family] == to.Addresses[family] {
		return true
	}
	return oneWay(w, networkingv1.PolicyTypeEgress, from, to, to, family, protocol, port) &&
		oneWay(w, networkingv1.PolicyTypeIngress, to, from, to, family, protocol, port)
}

// oneWay: subject is the pod that policies may isolate.
func oneWay(w World, kind networkingv1.PolicyType, subject, peer, receiver *Pod, family int, protocol uint8, port uint16) bool {
	isolated := false
	for _, policy := range w.Policies {
		if policy.Namespace != subject.Namespace || !selects(&policy.Spec.PodSelector, subject.Labels) {
			continue
		}
		for _, t := range policy.Spec.PolicyTypes {
			isolated = isolated || t == kind
		}
		if kind == networkingv1.PolicyTypeIngress {
			for _, rule := range policy.Spec.Ingress {
				if peerMatches(w, policy, rule.From, peer, family) && portMatches(rule.Ports, receiver, protocol, port) {
					return true
				}
			}
		} else {
			for _, rule := range policy.Spec.Egress {
				if peerMatches(w, policy, rule.To, peer, family) && portMatches(rule.Ports, receiver, protocol, port) {
					return true
				}
			}
		}
	}
	return !isolated
}

func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	s, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && s.Matches(set)
}

func peerMatches(w World, policy *networkingv1.NetworkPolicy, peers []networkingv1.NetworkPolicyPeer, other *Pod, family int) bool {
	for _, p := range peers {
		if p.IPBlock != nil {
			inside := netip.MustParsePrefix(p.IPBlock.CIDR).Contains(other.Addresses[family])
			for _, e := range p.IPBlock.Except {
				inside = inside && !netip.MustParsePrefix(e).Contains(other.Addresses[family])
			}
			if inside {
				return true
			}
			continue
		}
		if other.Namespace == "" {
			continue
		}
		inNamespace := other.Namespace == policy.Namespace
		if p.NamespaceSelector != nil {
			set, known := w.Namespaces[other.Namespace]
			inNamespace = known && selects(p.NamespaceSelector, set)
		}
		if inNamespace && (p.PodSelector == nil || selects(p.PodSelector, other.Labels)) {
			return true
		}
	}
	return len(peers) == 0
}

func portMatches(ports []networkingv1.NetworkPolicyPort, receiver *Pod, protocol uint8, port uint16) bool {
	for _, p := range ports {
		wanted := corev1.ProtocolTCP
		if p.Protocol != nil {
			wanted = *p.Protocol
		}
		if map[corev1.Protocol]uint8{"TCP": 6, "UDP": 17, "SCTP": 132}[wanted] != protocol {
			continue
		}
		switch {
		case p.Port == nil:
			return true
		case p.Port.StrVal != "":
			for _, named := range receiver.Ports {
				if named.Name == p.Port.StrVal && named.Protocol == protocol && named.Number == port {
					return true
				}
			}
		case p.EndPort != nil:
			if int32(port) >= p.Port.IntVal && int32(port) <= *p.EndPort {
				return true
			}
		case int32(port) == p.Port.IntVal:
			return true
		}
	}
	return len(ports) == 0
}
