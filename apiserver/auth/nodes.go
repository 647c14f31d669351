package auth

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/selection"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/clusterdns"
	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var (
	readVerbs        = []string{"get", "list", "watch"}
	followVerbs      = []string{"list", "watch"}
	getVerb          = []string{"get"}
	createVerb       = []string{"create"}
	writeVerbs       = []string{"update", "patch"}
	createWriteVerbs = []string{"create", "update", "patch"}
	ownVerbs         = []string{"get", "create", "update", "patch", "delete"}
)

// PodNetworkName is the ConfigMap in kube-system that says where pods get their addresses from. Every node reads it.
const PodNetworkName = "pod-network"

// target says which object a rule is about.
type target int

const (
	anyObject target = iota
	// ownName: the object is named after the node. A create carries no name here: it is judged
	// as judgedLater.
	ownName
	// judgedLater: any object here; admission (nodeRestriction) sees the object, and judges.
	judgedLater
	// ownLease is ownName in the namespace of node leases.
	ownLease
	// ownPods: a pod bound to the node, or those in a list that is narrowed to it. A missing pod
	// passes: the answer is 404 then, which agents rely on.
	ownPods
	// onNode: an object whose field spec.nodeName names the node, or those in a list that is narrowed to it.
	onNode
	// usedObject: one that a pod on the node uses.
	usedObject
	// ingressCertificate: a Secret with the certificate of an Ingress or a Gateway that nodes serve, if this one does.
	ingressCertificate
	// gatewayAuthority: a ConfigMap with the authorities by which nodes that serve judge the backends of Gateways.
	gatewayAuthority
	// revoked: the ConfigMap that says who is shut out.
	revoked
	// podNetwork: the ConfigMap PodNetworkName.
	podNetwork
	// corefile: the ConfigMap of the cluster's DNS.
	corefile
	// usedVolume: a volume whose claim a pod on the node uses.
	usedVolume
	// volumeSecret: a Secret that such a volume names, for its CSI driver.
	volumeSecret
)

// nodeRule allows verbs on a resource ("pods/status") to a node.
type nodeRule struct {
	group, resource string
	verbs           []string
	target          target
}

// nodeRules is all a node may do beyond what everyone may.
var nodeRules = []nodeRule{
	{"", "pods", readVerbs, ownPods},
	{"", "pods", followVerbs, anyObject}, // of others' pods a node sees little: apiserver/rest, podview.go
	{"", "pods", []string{"create", "delete"}, judgedLater},
	{"", "pods/status", writeVerbs, judgedLater},
	{"", "pods/eviction", createVerb, judgedLater},
	{"", "secrets", readVerbs, usedObject},
	{"", "secrets", readVerbs, ingressCertificate},
	{"", "secrets", getVerb, volumeSecret},
	{"networking.k8s.io", "ingresses", readVerbs, anyObject}, // agents serve them, as an ingress controller does elsewhere
	{"networking.k8s.io", "ingressclasses", readVerbs, anyObject},
	{"gateway.networking.k8s.io", "gatewayclasses", followVerbs, anyObject}, // and Gateways
	{"gateway.networking.k8s.io", "gateways", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "httproutes", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "grpcroutes", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "listenersets", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "tlsroutes", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "backendtlspolicies", followVerbs, anyObject},
	{"gateway.networking.k8s.io", "referencegrants", followVerbs, anyObject},
	{"", "configmaps", readVerbs, usedObject},
	{"", "configmaps", readVerbs, gatewayAuthority},
	{"", "configmaps", getVerb, podNetwork},
	{"", "configmaps", readVerbs, revoked},  // agents shut out whom servers shut out
	{"", "configmaps", readVerbs, corefile}, // agents serve the names of the cluster, as CoreDNS does elsewhere
	{"", "persistentvolumeclaims", getVerb, usedObject},
	{"", "persistentvolumeclaims/status", writeVerbs, usedObject},
	{"", "persistentvolumes", getVerb, usedVolume},
	{"", "serviceaccounts", getVerb, usedObject},
	{"", "serviceaccounts/token", createVerb, usedObject},
	{"resource.k8s.io", "resourceclaims", getVerb, usedObject},
	{"resource.k8s.io", "resourceslices", createVerb, judgedLater},
	{"resource.k8s.io", "resourceslices", []string{"get", "update", "patch", "delete", "list", "watch", "deletecollection"}, onNode},
	{"", "services", readVerbs, anyObject},
	{"", "nodes", readVerbs, anyObject}, // agents route to all nodes, as network plugins do elsewhere
	{"", "nodes", createWriteVerbs, judgedLater},
	{"", "nodes/status", writeVerbs, judgedLater},
	{"", "endpoints", getVerb, anyObject},
	{"discovery.k8s.io", "endpointslices", readVerbs, anyObject}, // agents translate Services, as kube-proxy does elsewhere
	{"", "namespaces", followVerbs, anyObject},                   // agents enforce network policies, as network plugins do elsewhere
	{"networking.k8s.io", "networkpolicies", followVerbs, anyObject},
	{"node.k8s.io", "runtimeclasses", readVerbs, anyObject},
	{"storage.k8s.io", "csidrivers", readVerbs, anyObject},
	{"storage.k8s.io", "csinodes", ownVerbs, ownName},
	{"storage.k8s.io", "volumeattachments", getVerb, onNode},
	{"coordination.k8s.io", "leases", ownVerbs, ownLease},
	{"certificates.k8s.io", "certificatesigningrequests", append(createVerb[:1:1], readVerbs...), anyObject},
	{"certificates.k8s.io", "clustertrustbundles", readVerbs, anyObject},
	{"certificates.k8s.io", "podcertificaterequests", createVerb, judgedLater},
	{"certificates.k8s.io", "podcertificaterequests", readVerbs, onNode},
	{"authentication.k8s.io", "tokenreviews", createVerb, anyObject},
	{"authorization.k8s.io", "subjectaccessreviews", createVerb, anyObject},
	{"authorization.k8s.io", "localsubjectaccessreviews", createVerb, anyObject},
	{"", "events", createWriteVerbs, anyObject},
	{"events.k8s.io", "events", createWriteVerbs, anyObject},
}

// NodeOf returns the node that a user is. Both the group and the name are required: who
// has only one of them is not a node.
func NodeOf(who user.Info) (node string, ok bool) {
	node, ok = trust.NodeOfUser(who.GetName())
	return node, ok && slices.Contains(who.GetGroups(), trust.GroupNodes)
}

// nodes judges requests of nodes.
func nodes(workloads *Workloads, a authorizer.Attributes) (authorizer.Decision, string) {
	node, ok := NodeOf(a.GetUser())
	if !ok || !a.IsResourceRequest() {
		return authorizer.DecisionNoOpinion, ""
	}
	resource := a.GetResource()
	if a.GetSubresource() != "" {
		resource += "/" + a.GetSubresource()
	}
	reason := ""
	for i := range nodeRules {
		r := &nodeRules[i]
		if r.resource != resource || r.group != a.GetAPIGroup() || !slices.Contains(r.verbs, a.GetVerb()) {
			continue
		}
		if reason = r.refusal(workloads, node, a); reason == "" {
			return authorizer.DecisionAllow, ""
		}
	}
	return authorizer.DecisionNoOpinion, reason
}

// refusal says why the object is not the node's, or "".
func (r *nodeRule) refusal(workloads *Workloads, node string, a authorizer.Attributes) string {
	switch r.target {
	case ownLease:
		if a.GetNamespace() != corev1.NamespaceNodeLease {
			return fmt.Sprintf("can only access leases in the %q system namespace", corev1.NamespaceNodeLease)
		}
		return refuseOther(node, a)
	case ownName:
		return refuseOther(node, a)
	case ownPods:
		if a.GetVerb() != "get" && narrowedTo(node, a) {
			return ""
		}
		return refuseForeignPod(workloads, node, a)
	case onNode:
		return refuseElsewhere(workloads, node, a)
	case usedObject:
		return refuseUnused(workloads, node, a)
	case ingressCertificate:
		if a.GetName() == "" || workloads == nil || !workloads.isCertificate(node, a.GetNamespace(), a.GetName()) {
			return noRelationship(node)
		}
	case gatewayAuthority:
		if a.GetName() == "" || workloads == nil || !workloads.isAuthority(node, a.GetNamespace(), a.GetName()) {
			return noRelationship(node)
		}
	case podNetwork:
		if a.GetNamespace() != metav1.NamespaceSystem || a.GetName() != PodNetworkName {
			return noRelationship(node)
		}
	case revoked:
		if a.GetNamespace() != metav1.NamespaceSystem || a.GetName() != revocation.ConfigMapName {
			return noRelationship(node)
		}
	case corefile:
		if a.GetNamespace() != metav1.NamespaceSystem || a.GetName() != clusterdns.ConfigMap {
			return noRelationship(node)
		}
	case usedVolume:
		if workloads == nil || !workloads.usesVolume(node, a.GetName()) {
			return noRelationship(node)
		}
	case volumeSecret:
		if workloads == nil || !workloads.usesVolumeSecret(node, a.GetNamespace(), a.GetName()) {
			return noRelationship(node)
		}
	case anyObject, judgedLater:
	}
	return ""
}

func refuseOther(node string, a authorizer.Attributes) string {
	if a.GetName() == node || a.GetVerb() == "create" && a.GetName() == "" {
		return ""
	}
	what := map[string]string{"leases": "node lease", "csinodes": "CSINode"}[a.GetResource()]
	return fmt.Sprintf("can only access %s with the same name as the requesting node", what)
}

// narrowedTo reports whether a list or watch is of the pods on the node.
func narrowedTo(node string, a authorizer.Attributes) bool {
	requirements, _ := a.GetFieldSelector()
	for _, r := range requirements {
		if r.Field == "spec.nodeName" && r.Operator == selection.Equals && r.Value == node {
			return true
		}
	}
	return false
}

func refuseForeignPod(workloads *Workloads, node string, a authorizer.Attributes) string {
	if a.GetName() == "" {
		return "can only list/watch pods with spec.nodeName field selector"
	}
	if workloads != nil {
		if bound, found := workloads.NodeOf(a.GetNamespace(), a.GetName()); !found || bound == node {
			return ""
		}
	}
	return fmt.Sprintf("node %q may only use pods bound to it", node)
}

func refuseUnused(workloads *Workloads, node string, a authorizer.Attributes) string {
	if a.GetName() == "" {
		return "No Object name found"
	}
	if workloads == nil || !workloads.uses(node, reference{a.GetResource(), a.GetNamespace(), a.GetName()}) {
		return noRelationship(node)
	}
	return ""
}

// refuseElsewhere judges objects that belong to one node each.
func refuseElsewhere(workloads *Workloads, node string, a authorizer.Attributes) string {
	switch a.GetVerb() {
	case "list", "watch", "deletecollection":
		if narrowedTo(node, a) {
			return ""
		}
		return fmt.Sprintf("can only list/watch/deletecollection %s with nodeName field selector", a.GetResource())
	}
	if workloads == nil || workloads.nodeNamedBy(a.GetResource(), a.GetNamespace(), a.GetName()) != node {
		return noRelationship(node)
	}
	return ""
}

// noRelationship is worded as upstream's.
func noRelationship(node string) string {
	return fmt.Sprintf("no relationship found between node '%s' and this object", node)
}
