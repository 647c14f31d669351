package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// forNodes are roles of machines. system:node is bound to nobody: apiserver/auth
// judges nodes by what runs on them. It is there for those who look for it.
func forNodes() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole("system:node",
			rule("create", "authentication.k8s.io", "tokenreviews"),
			rule("create", "authorization.k8s.io", "localsubjectaccessreviews subjectaccessreviews"),
			rule(read, core, "configmaps pods secrets services"),
			rule("create "+read+" "+change, core, "nodes"),
			rule(change, core, "nodes/status pods/status"),
			rule("create delete", core, "pods"),
			rule("create", core, "pods/eviction serviceaccounts/token"),
			rule("get", core, "endpoints persistentvolumeclaims persistentvolumes serviceaccounts"),
			rule("get "+change, core, "persistentvolumeclaims/status"),
			recording(),
			rule("create "+read, "certificates.k8s.io", "certificatesigningrequests podcertificaterequests"),
			rule(read, "certificates.k8s.io", "clustertrustbundles"),
			rule("create delete get "+change, "coordination.k8s.io", "leases"),
			rule("get", "resource.k8s.io", "resourceclaims"),
			rule("deletecollection", "resource.k8s.io", "resourceslices"),
			rule("get", "storage.k8s.io", "volumeattachments"),
			rule(read, "storage.k8s.io", "csidrivers"),
			rule("create delete get "+change, "storage.k8s.io", "csinodes"),
			rule(read, "node.k8s.io", "runtimeclasses")),
		clusterRole("system:node-bootstrapper", rule("create "+read, "certificates.k8s.io", "certificatesigningrequests")),
		clusterRole("system:node-problem-detector", rule("get", core, "nodes"), rule("patch", core, "nodes/status"), recording()),
		clusterRole("system:node-proxier",
			rule("list watch", core, "endpoints services"), rule(read, core, "nodes"),
			rule("list watch", "discovery.k8s.io", "endpointslices"),
			rule("list watch", "networking.k8s.io", "servicecidrs"), recording()),
		clusterRole("system:kubelet-api-admin",
			rule(read+" proxy", core, "nodes"),
			rule("*", core, "nodes/configz nodes/healthz nodes/log nodes/metrics nodes/pods nodes/proxy nodes/stats")),
	}
}

// forParts are roles of programs that belong to a cluster: upstream's own, so that
// they can run beside this one, and add-ons that bind them.
func forParts() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole("system:auth-delegator", reviewing()...),
		clusterRole("system:kube-aggregator", rule(read, core, "endpoints services")),
		clusterRole("system:kube-dns", rule("list watch", core, "endpoints services")),
		clusterRole("system:heapster", rule(read, core, "events namespaces nodes pods"), rule(read, "extensions", "deployments")),
		clusterRole("system:kube-controller-manager", append(reviewing(),
			recording(),
			rule("create", "coordination.k8s.io", "leases"),
			named("get update", "coordination.k8s.io", "leases", "kube-controller-manager"),
			rule("create get update", core, "secrets serviceaccounts"),
			rule("delete", core, "secrets"),
			rule("get", core, "configmaps namespaces"),
			rule("create", core, "serviceaccounts/token"),
			rule("list watch", "*", "*"))...),
		clusterRole("system:kube-scheduler", append(scheduling(), reviewing()...)...),
		clusterRole("system:persistent-volume-provisioner",
			rule("create delete "+read, core, "persistentvolumes"),
			rule(read+" update", core, "persistentvolumeclaims"),
			rule(read, "storage.k8s.io", "storageclasses"),
			rule("watch", core, "events"), recording()),
		clusterRole("system:volume-scheduler",
			rule(read+" "+change, core, "persistentvolumeclaims persistentvolumes"),
			rule(read, "storage.k8s.io", "storageclasses")),
	}
}

func scheduling() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		recording(),
		rule("create", "coordination.k8s.io", "leases"),
		named(read+" update", "coordination.k8s.io", "leases", "kube-scheduler"),
		rule(readWrite, "coordination.k8s.io", "leasecandidates"),
		rule(read, core, "namespaces nodes persistentvolumeclaims persistentvolumes replicationcontrollers services"),
		rule(read+" delete", core, "pods"),
		rule("create", core, "bindings pods/binding"),
		rule(change, core, "pods/status"),
		rule("update", core, "pods/finalizers"),
		rule(read, "apps extensions", "replicasets"),
		rule(read, "apps", "statefulsets"),
		rule(read, "policy", "poddisruptionbudgets"),
		rule(read, "storage.k8s.io", "csidrivers csinodes csistoragecapacities volumeattachments"),
		rule(read, "resource.k8s.io", "deviceclasses resourceslices"),
		rule("create delete "+read+" "+change, "resource.k8s.io", "resourceclaims"),
		rule(read+" "+change, "resource.k8s.io", "resourceclaims/status"),
		rule(read, "resource.k8s.io", "devicetaintrules"),
		rule(change, "resource.k8s.io", "resourceclaims/binding"),
	}
}

// forSigning are the parts of saying yes to a certificate signing request.
func forSigning() []*rbacv1.ClusterRole {
	const group, signing = "certificates.k8s.io", "system:certificates.k8s.io:"
	approver := func(role, signer string) *rbacv1.ClusterRole {
		return clusterRole(signing+role, named("approve", group, "signers", signer))
	}
	return []*rbacv1.ClusterRole{
		clusterRole(signing+"certificatesigningrequests:nodeclient", rule("create", group, "certificatesigningrequests/nodeclient")),
		clusterRole(
			signing+"certificatesigningrequests:selfnodeclient",
			rule("create", group, "certificatesigningrequests/selfnodeclient"),
		),
		approver("kube-apiserver-client-approver", "kubernetes.io/kube-apiserver-client"),
		approver("kube-apiserver-client-kubelet-approver", "kubernetes.io/kube-apiserver-client-kubelet"),
		approver("kubelet-serving-approver", "kubernetes.io/kubelet-serving"),
		approver("legacy-unknown-approver", "kubernetes.io/legacy-unknown"),
	}
}
