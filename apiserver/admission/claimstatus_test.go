package admission

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

func TestClaimStatus(t *testing.T) {
	claim := func(edit ...func(*resourcev1.ResourceClaimStatus)) *resourcev1.ResourceClaim {
		c := &resourcev1.ResourceClaim{ObjectMeta: inNS("c")}
		for _, e := range edit {
			e(&c.Status)
		}
		return c
	}
	on := func(nodes ...string) func(*resourcev1.ResourceClaimStatus) {
		return func(s *resourcev1.ResourceClaimStatus) {
			s.Allocation = &resourcev1.AllocationResult{NodeSelector: &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{
				MatchFields: []corev1.NodeSelectorRequirement{{Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: nodes}},
			}}}}
		}
	}
	reserved := func(s *resourcev1.ResourceClaimStatus) {
		s.ReservedFor = []resourcev1.ResourceClaimConsumerReference{{Resource: "pods", Name: "p", UID: "u"}}
	}
	reports := func(driver, pool string) func(*resourcev1.ResourceClaimStatus) {
		return func(s *resourcev1.ResourceClaimStatus) {
			s.Devices = append(s.Devices, resourcev1.AllocatedDeviceStatus{Driver: driver, Pool: pool, Device: "d"})
		}
	}
	at := func(node string) user.Info {
		return &user.DefaultInfo{Name: "system:serviceaccount:ns:driver", Extra: map[string][]string{"authentication.kubernetes.io/node-name": {node}}}
	}
	const (
		bind     = "update binding /"
		local    = "associated-node:update driver ns/a"
		anywhere = "arbitrary-node:update driver ns/a"
		noBind   = `status: Forbidden: changing status.allocation or status.reservedFor requires resource="resourceclaims/binding", verb="update" permission: resourceclaims.resource.k8s.io is forbidden: User "system:serviceaccount:ns:driver" cannot update resource "resourceclaims/binding" in API group "resource.k8s.io" at the cluster scope`
		noReport = `status.devices: Forbidden: changing status.devices requires resource="resourceclaims/driver", verb="[arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "a" is forbidden`
		notHere  = `verb="[associated-node:update arbitrary-node:update]" permission: resourceclaims.resource.k8s.io "a" is forbidden: User "system:serviceaccount:ns:driver" cannot associated-node:update resource "resourceclaims/driver"`
	)
	for name, c := range map[string]struct {
		old, claim *resourcev1.ResourceClaim
		who        user.Info
		may        []string
		want       string
	}{
		"nothing changes":          {claim(on("n"), reserved, reports("a", "p")), claim(on("n"), reserved, reports("a", "p")), at("n"), nil, ""},
		"allocated":                {claim(), claim(on("n")), at("n"), []string{bind}, ""},
		"allocated by a driver":    {claim(), claim(on("n")), at("n"), []string{local, anywhere}, noBind},
		"reserved by a driver":     {claim(on("n")), claim(on("n"), reserved), at("n"), []string{local}, noBind},
		"released by a driver":     {claim(on("n"), reserved), claim(on("n")), at("n"), []string{local}, noBind},
		"reported at home":         {claim(on("n")), claim(on("n"), reports("a", "p")), at("n"), []string{local}, ""},
		"reported by who may all":  {claim(on("n")), claim(on("n"), reports("a", "p")), at("n"), []string{anywhere}, ""},
		"reported from elsewhere":  {claim(on("n")), claim(on("n"), reports("a", "p")), at("m"), []string{local}, noReport},
		"reported for many nodes":  {claim(on("n", "m")), claim(on("n", "m"), reports("a", "p")), at("n"), []string{local}, noReport},
		"reported by nobody":       {claim(on("n")), claim(on("n"), reports("a", "p")), at("n"), nil, notHere},
		"reported by a user":       {claim(on("n")), claim(on("n"), reports("a", "p")), &user.DefaultInfo{Name: "jane", Extra: at("n").GetExtra()}, []string{local}, noReport},
		"reported for another":     {claim(on("n"), reports("a", "p")), claim(on("n"), reports("a", "p"), reports("b", "p")), at("n"), []string{local}, `"b" is forbidden`},
		"withdrawn by another":     {claim(on("n"), reports("a", "p"), reports("b", "p")), claim(on("n"), reports("a", "p")), at("n"), []string{local}, `"b" is forbidden`},
		"given back with a report": {claim(on("n"), reports("a", "p")), claim(), at("n"), []string{bind}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			judge := func(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
				if slices.Contains(c.may, a.GetVerb()+" "+a.GetSubresource()+" "+a.GetNamespace()+"/"+a.GetName()) {
					return authorizer.DecisionAllow, "", nil
				}
				return authorizer.DecisionNoOpinion, "", nil
			}
			check(t, newWorld(t, judge, withNamespace()...).admit(t, request{obj: c.claim, old: c.old, subresource: "status", who: c.who}), c.want)
		})
	}
}
