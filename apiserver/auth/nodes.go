package auth

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// nodeLeaseNamespace holds one Lease for each node, named after it.
const nodeLeaseNamespace = "kube-node-lease"

var (
	readVerbs        = []string{"get", "list", "watch"}
	writeVerbs       = []string{"update", "patch"}
	createWriteVerbs = []string{"create", "update", "patch"}
)

// target says which object a rule is about.
type target int

const (
	anyObject target = iota
	// ownName: the object is named after the node. A create carries no name here; admission
	// (NodeRestriction) sees the object and judges it then.
	ownName
	// ownLease is ownName in the namespace of node leases.
	ownLease
	// ownPod: a pod bound to the node, if Config.PodNode can tell.
	ownPod
)

// nodeRule allows verbs on a resource ("pods/status") to a node.
type nodeRule struct {
	group, resource string
	verbs           []string
	target          target
}

// nodeRules is all a node may do beyond what everyone may. Reading secrets and configmaps
// is not yet narrowed to those that its pods use.
var nodeRules = []nodeRule{
	{"", "pods", readVerbs, anyObject},
	{"", "services", readVerbs, anyObject},
	{"", "nodes", readVerbs, anyObject},
	{"", "namespaces", readVerbs, anyObject},
	{"", "configmaps", readVerbs, anyObject},
	{"", "secrets", readVerbs, anyObject},
	{"", "endpoints", readVerbs, anyObject},
	{"", "persistentvolumes", readVerbs, anyObject},
	{"", "persistentvolumeclaims", readVerbs, anyObject},
	{"discovery.k8s.io", "endpointslices", readVerbs, anyObject},
	{"networking.k8s.io", "ingresses", readVerbs, anyObject},
	{"networking.k8s.io", "ingressclasses", readVerbs, anyObject},
	{"networking.k8s.io", "networkpolicies", readVerbs, anyObject},
	{"gateway.networking.k8s.io", "gateways", readVerbs, anyObject},
	{"gateway.networking.k8s.io", "httproutes", readVerbs, anyObject},
	{"node.k8s.io", "runtimeclasses", readVerbs, anyObject},
	{"storage.k8s.io", "csidrivers", readVerbs, anyObject},
	{"storage.k8s.io", "csinodes", readVerbs, anyObject},
	{"coordination.k8s.io", "leases", []string{"get"}, ownLease},
	{"coordination.k8s.io", "leases", createWriteVerbs, ownLease},
	{"", "nodes", createWriteVerbs, ownName},
	{"", "nodes/status", writeVerbs, ownName},
	{"", "pods/status", writeVerbs, ownPod},
	{"", "pods", []string{"delete"}, ownPod},
	{"", "events", []string{"create", "patch"}, anyObject},
	{"events.k8s.io", "events", []string{"create", "patch"}, anyObject},
}

// nodes judges requests of node certificates. Both the group and the name are required: a
// certificate with only one of them is not a node's.
func nodes(ctx context.Context, config Config, a authorizer.Attributes) (authorizer.Decision, string) {
	node, ok := pki.NodeOfUser(a.GetUser().GetName())
	if !ok || !slices.Contains(a.GetUser().GetGroups(), pki.GroupNodes) || !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, ""
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	reason := ""
	for _, r := range nodeRules {
		if r.group != a.GetAPIGroup() || r.resource != resource || !slices.Contains(r.verbs, a.GetVerb()) {
			continue
		}
		if reason = r.refusal(ctx, config, node, a); reason == "" {
			return authorizer.DecisionAllow, ""
		}
	}
	return authorizer.DecisionNoOpinion, reason
}

// refusal says why the object is not the node's, or "".
func (r nodeRule) refusal(ctx context.Context, config Config, node string, a authorizer.Attributes) string {
	switch r.target {
	case ownLease:
		if a.GetNamespace() != nodeLeaseNamespace {
			return fmt.Sprintf("node %q may only use leases in %s", node, nodeLeaseNamespace)
		}
		return refuseOther(node, a)
	case ownName:
		return refuseOther(node, a)
	case ownPod:
		return refuseForeignPod(ctx, config, node, a)
	case anyObject:
	}
	return ""
}

func refuseOther(node string, a authorizer.Attributes) string {
	if a.GetName() == node || a.GetVerb() == "create" && a.GetName() == "" {
		return ""
	}
	return fmt.Sprintf("node %q may only write what bears its own name", node)
}

// refuseForeignPod lets a missing pod pass: the answer is 404 then, which agents rely on.
func refuseForeignPod(ctx context.Context, config Config, node string, a authorizer.Attributes) string {
	if config.PodNode == nil {
		return ""
	}
	bound, found := config.PodNode(ctx, a.GetNamespace(), a.GetName())
	if !found || bound == node {
		return ""
	}
	return fmt.Sprintf("node %q may only change pods bound to it", node)
}
