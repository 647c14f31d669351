package networking

import (
	networkingv1 "k8s.io/api/networking/v1"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Supported values in the order of messages.
var (
	protocols   = []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP}
	policyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress, networkingv1.PolicyTypeEgress}
)

func networkPolicies() resource.Kind[*networkingv1.NetworkPolicy] {
	return resource.Kind[*networkingv1.NetworkPolicy]{
		GroupVersionKind: networkingv1.SchemeGroupVersion.WithKind("NetworkPolicy"),
		Plural:           "networkpolicies",
		ShortNames:       []string{"netpol"},
		New:              func() *networkingv1.NetworkPolicy { return &networkingv1.NetworkPolicy{} },
		NewList:          func() runtime.Object { return &networkingv1.NetworkPolicyList{} },
		Default:          defaultNetworkPolicy,
		Validate: func(policy *networkingv1.NetworkPolicy) field.ErrorList {
			return validateNetworkPolicy(policy, judge{})
		},
		ValidateUpdate: validateNetworkPolicyUpdate,
		Warnings:       networkPolicyWarnings,
		Spec:           func(policy *networkingv1.NetworkPolicy) any { return &policy.Spec },
		Generation:     true,
		Columns: []resource.Column[*networkingv1.NetworkPolicy]{
			column.Name[*networkingv1.NetworkPolicy](),
			column.Text(
				"Pod-Selector",
				networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"],
				0,
				func(policy *networkingv1.NetworkPolicy) string {
					return metav1.FormatLabelSelector(&policy.Spec.PodSelector)
				},
			),
			column.Age[*networkingv1.NetworkPolicy](),
		},
	}
}

// defaultNetworkPolicy: a policy without types isolates for ingress, and for egress
// if it has rules for that.
func defaultNetworkPolicy(policy *networkingv1.NetworkPolicy) {
	spec := &policy.Spec
	if len(spec.PolicyTypes) == 0 {
		spec.PolicyTypes = []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}
		if len(spec.Egress) > 0 {
			spec.PolicyTypes = append(spec.PolicyTypes, networkingv1.PolicyTypeEgress)
		}
	}
	eachRule(policy, func(ports []networkingv1.NetworkPolicyPort, _ []networkingv1.NetworkPolicyPeer, _ *field.Path, _ string) {
		for i := range ports {
			rule.DefaultPointer(&ports[i].Protocol, corev1.ProtocolTCP)
		}
	})
}

// eachRule visits the rules of both directions; peers is the name of the field of
// the peers.
func eachRule(
	policy *networkingv1.NetworkPolicy,
	visit func(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, path *field.Path, peersField string),
) {
	path := field.NewPath("spec")
	for i := range policy.Spec.Ingress {
		visit(policy.Spec.Ingress[i].Ports, policy.Spec.Ingress[i].From, path.Child("ingress").Index(i), "from")
	}
	for i := range policy.Spec.Egress {
		visit(policy.Spec.Egress[i].Ports, policy.Spec.Egress[i].To, path.Child("egress").Index(i), "to")
	}
}

func eachBlock(policy *networkingv1.NetworkPolicy, visit func(block *networkingv1.IPBlock, path *field.Path)) {
	eachRule(policy, func(_ []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, path *field.Path, peersField string) {
		for i := range peers {
			if peers[i].IPBlock != nil {
				visit(peers[i].IPBlock, path.Child(peersField).Index(i).Child("ipBlock"))
			}
		}
	})
}

func networkPolicyWarnings(policy *networkingv1.NetworkPolicy) []string {
	var warnings []string
	eachBlock(policy, func(block *networkingv1.IPBlock, path *field.Path) {
		warnings = append(warnings, cidrWarnings(block.CIDR, path.Child("cidr"))...)
		for i, except := range block.Except {
			warnings = append(warnings, cidrWarnings(except, path.Child("except").Index(i))...)
		}
	})
	return warnings
}

// cidrWarnings: upstream's function logs what is no range at all.
func cidrWarnings(cidr string, path *field.Path) []string {
	if _, _, err := netutils.ParseCIDRSloppy(cidr); err != nil {
		return nil
	}
	return utilvalidation.GetWarningsForCIDR(path, cidr)
}

// judge knows what the stored policy has had: bad labels in its selector, and ranges
// written in a way that is no longer accepted, wherever they stand now.
type judge struct {
	badLabels bool
	ranges    []string
}

func validateNetworkPolicyUpdate(policy, old *networkingv1.NetworkPolicy) field.ErrorList {
	j := judge{badLabels: len(judge{}.selector(&old.Spec.PodSelector, nil)) > 0}
	eachBlock(old, func(block *networkingv1.IPBlock, _ *field.Path) {
		j.ranges = append(append(j.ranges, block.CIDR), block.Except...)
	})
	return validateNetworkPolicy(policy, j)
}

func (j judge) selector(selector *metav1.LabelSelector, path *field.Path) field.ErrorList {
	return metav1validation.ValidateLabelSelector(
		selector,
		metav1validation.LabelSelectorValidationOptions{AllowInvalidLabelValueInSelector: j.badLabels},
		path,
	)
}

func validateNetworkPolicy(policy *networkingv1.NetworkPolicy, j judge) field.ErrorList {
	path := field.NewPath("spec")
	errs := j.selector(&policy.Spec.PodSelector, path.Child("podSelector"))
	eachRule(
		policy,
		func(ports []networkingv1.NetworkPolicyPort, peers []networkingv1.NetworkPolicyPeer, at *field.Path, peersField string) {
			for i := range ports {
				errs = append(errs, validatePolicyPort(&ports[i], at.Child("ports").Index(i))...)
			}
			for i := range peers {
				errs = append(errs, j.peer(&peers[i], at.Child(peersField).Index(i))...)
			}
		},
	)
	types := policy.Spec.PolicyTypes
	if len(types) > len(policyTypes) {
		return append(errs, field.Invalid(path.Child("policyTypes"), types, "may not specify more than two policyTypes"))
	}
	for i := range types {
		errs = append(errs, rule.OneOf(types[i], policyTypes, path.Child("policyTypes").Index(i))...)
	}
	return errs
}

func validatePolicyPort(port *networkingv1.NetworkPolicyPort, path *field.Path) field.ErrorList {
	errs := rule.OptionalOneOf(port.Protocol, protocols, path.Child("protocol"))
	if port.Port != nil {
		errs = append(errs, rule.PortOrName(*port.Port, path.Child("port"))...)
	}
	if port.EndPort == nil {
		return errs
	}
	end, at := *port.EndPort, path.Child("endPort")
	switch {
	case port.Port == nil:
		return append(errs, field.Invalid(at, end, "may not be specified when `port` is not specified"))
	case port.Port.Type == intstr.String:
		return append(errs, field.Invalid(at, end, "may not be specified when `port` is non-numeric"))
	case end < port.Port.IntVal:
		errs = append(errs, field.Invalid(at, end, "must be greater than or equal to `port`"))
	}
	return append(errs, rule.Port(end, at)...)
}

func (j judge) peer(peer *networkingv1.NetworkPolicyPeer, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if peer.PodSelector != nil {
		errs = append(errs, j.selector(peer.PodSelector, path.Child("podSelector"))...)
	}
	if peer.NamespaceSelector != nil {
		errs = append(errs, j.selector(peer.NamespaceSelector, path.Child("namespaceSelector"))...)
	}
	selected := peer.PodSelector != nil || peer.NamespaceSelector != nil
	if peer.IPBlock != nil {
		errs = append(errs, j.block(peer.IPBlock, path.Child("ipBlock"))...)
	}
	switch {
	case !selected && peer.IPBlock == nil:
		errs = append(errs, field.Required(path, "must specify a peer"))
	case selected && peer.IPBlock != nil:
		errs = append(errs, field.Forbidden(path, "may not specify both ipBlock and another peer"))
	}
	return errs
}

func (j judge) block(block *networkingv1.IPBlock, path *field.Path) field.ErrorList {
	if block.CIDR == "" {
		return field.ErrorList{field.Required(path.Child("cidr"), "")}
	}
	errs := utilvalidation.IsValidCIDRForLegacyField(path.Child("cidr"), block.CIDR, true, j.ranges)
	_, whole, err := netutils.ParseCIDRSloppy(block.CIDR)
	if err != nil {
		return errs
	}
	wholeBits, _ := whole.Mask.Size()
	for i, except := range block.Except {
		at := path.Child("except").Index(i)
		errs = append(errs, utilvalidation.IsValidCIDRForLegacyField(at, except, true, j.ranges)...)
		_, part, err := netutils.ParseCIDRSloppy(except)
		if err != nil {
			continue
		}
		if bits, _ := part.Mask.Size(); !whole.Contains(part.IP) || bits <= wholeBits {
			errs = append(errs, field.Invalid(at, except, "must be a strict subset of `cidr`"))
		}
	}
	return errs
}
