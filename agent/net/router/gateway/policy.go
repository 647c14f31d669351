package gateway

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	v1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/setpoint-io/setpoint/agent/net/router/table"
	"github.com/setpoint-io/setpoint/internal/gatewayapi"
)

// policy is a BackendTLSPolicy, and what is known of it.
type policy struct {
	*v1.BackendTLSPolicy
	// tls is nil if nobody can be trusted: connections must fail.
	tls *table.TLS
	// accepted and resolved say what is wrong; zero: nothing.
	accepted, resolved fault
	// ancestors are the Gateways by which its targets are reached, each with the fault of the targets that an older policy has.
	ancestors map[types.NamespacedName]fault
}

// target is a Service, or its port of that name.
type target struct{ namespace, service, port string }

// judgePolicies reads all policies. Those of one target are in the order of age: the first counts, whatever is wrong with it.
func (b *builder) judgePolicies() {
	b.policies = map[target][]*policy{}
	all := slices.SortedFunc(slices.Values(b.BackendTLSPolicies), func(a, b *v1.BackendTLSPolicy) int { return older(a, b) })
	for _, object := range all {
		p := &policy{BackendTLSPolicy: object, ancestors: map[types.NamespacedName]fault{}}
		b.judged = append(b.judged, p)
		if object.DeletionTimestamp != nil {
			continue
		}
		b.judgeTrust(p)
		for _, ref := range object.Spec.TargetRefs {
			if ref.Group == corev1.GroupName && ref.Kind == "Service" {
				at := target{object.Namespace, string(ref.Name), string(*orZero(ref.SectionName))}
				b.policies[at] = append(b.policies[at], p)
			}
		}
	}
}

// judgeTrust finds out whom the policy trusts.
func (b *builder) judgeTrust(p *policy) {
	spec := &p.Spec.Validation
	authorities := b.authorities(p)
	system := spec.WellKnownCACertificates != nil && *spec.WellKnownCACertificates == v1.WellKnownCACertificatesSystem
	switch {
	case len(p.Spec.Options) > 0:
		p.accepted = fault{string(v1.PolicyReasonInvalid), "there are no options here"}
	case len(spec.CACertificateRefs) > 0 && len(authorities) == 0:
		p.accepted = fault{string(v1.BackendTLSPolicyReasonNoValidCACertificate), "none of its caCertificateRefs can be used"}
	case len(spec.CACertificateRefs) == 0 && !system:
		p.accepted = fault{string(v1.PolicyReasonInvalid), "of wellKnownCACertificates there is only System"}
	default:
		p.tls = table.NewTLS(string(spec.Hostname), authorities, namesOf(spec.SubjectAltNames))
	}
}

// authorities are those that can be used; resolved says why others cannot.
func (b *builder) authorities(p *policy) (found []*table.Authorities) {
	for _, ref := range p.Spec.Validation.CACertificateRefs {
		if !gatewayapi.IsConfigMap(&ref) {
			p.resolved = fault{string(v1.BackendTLSPolicyReasonInvalidKind), fmt.Sprintf("%s %s is no ConfigMap", ref.Kind, ref.Name)}
			continue
		}
		made, err := b.Authorities(p.Namespace, string(ref.Name))
		if err != nil {
			p.resolved = fault{string(v1.BackendTLSPolicyReasonInvalidCACertificateRef), fmt.Sprintf("ConfigMap %s: %v", ref.Name, err)}
			continue
		}
		found = append(found, made)
	}
	return found
}

func namesOf(all []v1.SubjectAltName) (names table.Names) {
	for _, name := range all {
		if name.Type == v1.URISubjectAltNameType {
			names.URIs = append(names.URIs, string(name.URI))
		} else {
			names.Hosts = append(names.Hosts, string(name.Hostname))
		}
	}
	return names
}

// policiesOf are those of a port, the one that counts first: one for the port comes before one for the whole Service.
func (b *builder) policiesOf(namespace, service, port string) []*policy {
	if own := b.policies[target{namespace, service, port}]; len(own) > 0 {
		return own
	}
	return b.policies[target{namespace, service, ""}]
}

// reached remembers that backends of policies are reached by a Gateway.
func reached(by types.NamespacedName, backends [][]*policy) {
	for _, all := range backends {
		for i, p := range all {
			if !p.ancestors[by].any() {
				p.ancestors[by] = fault{}
			}
			if i > 0 {
				p.ancestors[by] = fault{string(v1.PolicyReasonConflicted), fmt.Sprintf("the policy %s is older, and has the same target", all[0].Name)}
			}
		}
	}
}

// PolicyState is what a BackendTLSPolicy's status says of the Gateways that are ours, which may be none.
type PolicyState struct {
	Policy    *v1.BackendTLSPolicy
	Ancestors []v1.PolicyAncestorStatus
}

func (p *policy) state() PolicyState {
	made := PolicyState{Policy: p.BackendTLSPolicy}
	byName := func(a, b types.NamespacedName) int { return cmp.Compare(a.String(), b.String()) }
	for _, at := range slices.SortedFunc(maps.Keys(p.ancestors), byName) {
		accepted := p.ancestors[at]
		if !accepted.any() {
			accepted = p.accepted
		}
		group, kind, namespace := v1.Group(v1.GroupName), v1.Kind("Gateway"), v1.Namespace(at.Namespace)
		made.Ancestors = append(made.Ancestors, v1.PolicyAncestorStatus{
			AncestorRef:    v1.ParentReference{Group: &group, Kind: &kind, Namespace: &namespace, Name: v1.ObjectName(at.Name)},
			ControllerName: gatewayapi.Controller, Conditions: []metav1.Condition{
				accepted.condition(string(v1.PolicyConditionAccepted), string(v1.PolicyReasonAccepted)),
				p.resolved.condition(string(v1.BackendTLSPolicyConditionResolvedRefs), string(v1.BackendTLSPolicyReasonResolvedRefs)),
			},
		})
	}
	return made
}
