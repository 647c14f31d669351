package policy

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// controllerPrefix begins the roles of upstream's controllers. The rest is the service
// account in kube-system that holds the role.
const controllerPrefix = "system:controller:"

// controllerBindings give each controller's role to its account.
func controllerBindings() []*rbacv1.ClusterRoleBinding {
	var all []*rbacv1.ClusterRoleBinding
	for _, role := range forControllers() {
		all = append(all, clusterBinding(role.Name, account(strings.TrimPrefix(role.Name, controllerPrefix))))
	}
	return all
}

// forControllers are roles of upstream's controllers, which may run beside ours: a part
// of a cluster that looks for its own account and role finds both.
func forControllers() []*rbacv1.ClusterRole {
	return slices.Concat(forWorkloads(), forServing(), forMachines(), forVolumes(), forObjects())
}

// forWorkloads: what makes pods.
func forWorkloads() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(controllerPrefix+"cronjob-controller",
			rule("get list update watch", "batch", "cronjobs"),
			rule("create delete get list "+change+" watch", "batch", "jobs"),
			rule("update", "batch", "cronjobs/status"),
			rule("update", "batch", "cronjobs/finalizers"),
			rule("delete list watch", core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"daemon-set-controller",
			rule(read, "apps extensions", "daemonsets"),
			rule("update", "apps extensions", "daemonsets/status"),
			rule("update", "apps extensions", "daemonsets/finalizers"),
			rule("list watch", core, "nodes"),
			rule("create delete list patch watch", core, "pods"),
			rule("create", core, "pods/binding"),
			rule("create delete get list "+change+" watch", "apps", "controllerrevisions"),
			recording()),
		clusterRole(controllerPrefix+"deployment-controller",
			rule("get list update watch", "apps extensions", "deployments"),
			rule("update", "apps extensions", "deployments/status"),
			rule("update", "apps extensions", "deployments/finalizers"),
			rule("create delete get list "+change+" watch", "apps extensions", "replicasets"),
			rule("get list update watch", core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"job-controller",
			rule("get list "+change+" watch", "batch", "jobs"),
			rule("update", "batch", "jobs/status"),
			rule("update", "batch", "jobs/finalizers"),
			rule("create delete list patch watch", core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"replicaset-controller",
			rule("get list update watch", "apps extensions", "replicasets"),
			rule("update", "apps extensions", "replicasets/status"),
			rule("update", "apps extensions", "replicasets/finalizers"),
			rule("create delete list patch watch", core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"replication-controller",
			rule("get list update watch", core, "replicationcontrollers"),
			rule("update", core, "replicationcontrollers/status"),
			rule("update", core, "replicationcontrollers/finalizers"),
			rule("create delete list patch watch", core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"statefulset-controller",
			rule("list watch", core, "pods"),
			rule(read, "apps", "statefulsets"),
			rule("update", "apps", "statefulsets/status"),
			rule("update", "apps", "statefulsets/finalizers"),
			rule("create delete get "+change, core, "pods"),
			rule("create delete get list "+change+" watch", "apps", "controllerrevisions"),
			rule("create "+read, core, "persistentvolumeclaims"),
			rule("delete update", core, "persistentvolumeclaims"),
			rule("update", core, "pods/finalizers"),
			recording()),
	}
}

// forServing: what follows pods: their traffic, number and end.
func forServing() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(controllerPrefix+"disruption-controller",
			rule(read, "apps extensions", "deployments"),
			rule(read, "apps extensions", "replicasets"),
			rule(read, core, "replicationcontrollers"),
			rule(read, "policy", "poddisruptionbudgets"),
			rule(read, "apps", "statefulsets"),
			rule("update", "policy", "poddisruptionbudgets/status"),
			rule(change, core, "pods/status"),
			rule("get", "*", "*/scale"),
			recording()),
		clusterRole(controllerPrefix+"endpoint-controller",
			rule(read, core, "pods services"),
			rule("create delete get list update watch", core, "endpoints"),
			rule("create", core, "endpoints/restricted"),
			recording()),
		clusterRole(controllerPrefix+"endpointslice-controller",
			rule(read, core, "nodes pods services"),
			rule("update", core, "services/finalizers"),
			rule("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
			recording()),
		clusterRole(controllerPrefix+"endpointslicemirroring-controller",
			rule(read, core, "endpoints services"),
			rule("update", core, "services/finalizers"),
			rule("update", core, "endpoints/finalizers"),
			rule("create delete get list update watch", "discovery.k8s.io", "endpointslices"),
			recording()),
		clusterRole(controllerPrefix+"horizontal-pod-autoscaler",
			rule(read, "autoscaling", "horizontalpodautoscalers"),
			rule("update", "autoscaling", "horizontalpodautoscalers/status"),
			rule("get update", "*", "*/scale"),
			rule("list watch", core, "pods"),
			rule("list watch", "metrics.k8s.io", "pods"),
			rule(read, "custom.metrics.k8s.io", "*"),
			rule(read, "external.metrics.k8s.io", "*"),
			recording()),
		clusterRole(controllerPrefix+"pod-garbage-collector",
			rule("delete list watch", core, "pods"),
			rule(read, core, "nodes"),
			rule("patch", core, "pods/status")),
		clusterRole(controllerPrefix+"service-controller",
			rule(read, core, "services"),
			rule(change, core, "services/status"),
			rule("list watch", core, "nodes"),
			recording()),
		clusterRole(controllerPrefix+"ttl-after-finished-controller",
			rule("delete "+read, "batch", "jobs"),
			recording()),
	}
}

// forMachines: what keeps nodes and their devices.
func forMachines() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(controllerPrefix+"device-taint-eviction-controller",
			rule("delete "+read, core, "pods"),
			rule(change, core, "pods/status"),
			rule(read, "resource.k8s.io", "resourceclaims"),
			rule(read, "resource.k8s.io", "resourceslices"),
			rule(read, "resource.k8s.io", "deviceclasses"),
			recording(),
			rule(change, "resource.k8s.io", "devicetaintrules/status"),
			rule(read, "resource.k8s.io", "devicetaintrules")),
		clusterRole(controllerPrefix+"node-controller",
			rule("delete get list "+change+" watch", core, "nodes"),
			rule(change, core, "nodes/status"),
			rule(change, core, "pods/status"),
			rule("delete "+read, core, "pods"),
			rule(read, "coordination.k8s.io", "leases"),
			recording()),
		clusterRole(controllerPrefix+"resource-claim-controller",
			rule(read, core, "pods"),
			rule("update", core, "pods/finalizers"),
			rule("create delete "+read, "resource.k8s.io", "resourceclaims"),
			rule(change, "resource.k8s.io", "resourceclaims resourceclaims/status"),
			rule(change, core, "pods/status"),
			recording(),
			rule(change, "resource.k8s.io", "resourceclaims/binding")),
		clusterRole(controllerPrefix+"route-controller",
			rule("list watch", core, "nodes"),
			rule("patch", core, "nodes/status"),
			recording()),
		clusterRole(controllerPrefix+"selinux-warning-controller",
			recording(),
			rule(read, core, "persistentvolumes"),
			rule(read, core, "persistentvolumeclaims"),
			rule(read, core, "pods"),
			rule(read, "storage.k8s.io", "csidrivers")),
		clusterRole(controllerPrefix+"ttl-controller",
			rule("list "+change+" watch", core, "nodes"),
			recording()),
	}
}

// forVolumes: what keeps volumes and claims.
func forVolumes() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(controllerPrefix+"attachdetach-controller",
			rule("list watch", core, "persistentvolumeclaims persistentvolumes"),
			rule(read, core, "nodes"),
			rule(change, core, "nodes/status"),
			rule("list watch", core, "pods"),
			recording(),
			rule("create delete "+read, "storage.k8s.io", "volumeattachments"),
			rule(read, "storage.k8s.io", "csidrivers"),
			rule(read, "storage.k8s.io", "csinodes")),
		clusterRole(controllerPrefix+"ephemeral-volume-controller",
			rule(read, core, "pods"),
			rule("update", core, "pods/finalizers"),
			rule("create "+read, core, "persistentvolumeclaims"),
			recording()),
		clusterRole(controllerPrefix+"expand-controller",
			rule("get list "+change+" watch", core, "persistentvolumes"),
			rule(change, core, "persistentvolumeclaims/status"),
			rule(read, core, "persistentvolumeclaims"),
			recording()),
		clusterRole(controllerPrefix+"legacy-service-account-token-cleaner",
			named("get", core, "configmaps", "kube-apiserver-legacy-service-account-token-tracking"),
			rule("delete patch", core, "secrets")),
		clusterRole(controllerPrefix+"persistent-volume-binder",
			rule("create delete get list update watch", core, "persistentvolumes"),
			rule("update", core, "persistentvolumes/status"),
			rule("get list update watch", core, "persistentvolumeclaims"),
			rule("update", core, "persistentvolumeclaims/status"),
			rule("create delete "+read, core, "pods"),
			rule(read, "storage.k8s.io", "storageclasses"),
			rule("list watch", core, "nodes"),
			recording(),
			rule("watch", core, "events")),
		clusterRole(controllerPrefix+"pv-protection-controller",
			rule("get list update watch", core, "persistentvolumes"),
			recording()),
		clusterRole(controllerPrefix+"pvc-protection-controller",
			rule("get list update watch", core, "persistentvolumeclaims"),
			rule("update", core, "persistentvolumeclaims/status"),
			rule(read, core, "pods"),
			recording()),
		clusterRole(controllerPrefix+"volumeattributesclass-protection-controller",
			rule(read, core, "persistentvolumeclaims"),
			rule(read, core, "persistentvolumes"),
			rule("get list update watch", "storage.k8s.io", "volumeattributesclasses"),
			recording()),
	}
}

// forObjects: what keeps other objects, accounts and certificates.
func forObjects() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole(
			controllerPrefix+"certificate-controller",
			rule("delete "+read, "certificates.k8s.io", "certificatesigningrequests"),
			rule("update", "certificates.k8s.io", "certificatesigningrequests/approval certificatesigningrequests/status"),
			named("approve", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-client-kubelet"),
			named(
				"sign",
				"certificates.k8s.io",
				"signers",
				"kubernetes.io/kube-apiserver-client kubernetes.io/kube-apiserver-client-kubelet kubernetes.io/kubelet-serving kubernetes.io/legacy-unknown",
			),
			rule("create", "authorization.k8s.io", "subjectaccessreviews"),
			recording(),
		),
		clusterRole(controllerPrefix+"clusterrole-aggregation-controller",
			rule("escalate get list "+change+" watch", "rbac.authorization.k8s.io", "clusterroles")),
		clusterRole(controllerPrefix+"generic-garbage-collector",
			rule("delete get list "+change+" watch", "*", "*"),
			recording()),
		clusterRole(controllerPrefix+"kube-apiserver-serving-clustertrustbundle-publisher",
			named("attest", "certificates.k8s.io", "signers", "kubernetes.io/kube-apiserver-serving"),
			rule("create delete list update watch", "certificates.k8s.io", "clustertrustbundles"),
			recording()),
		clusterRole(controllerPrefix+"namespace-controller",
			rule("delete "+read, core, "namespaces"),
			rule("update", core, "namespaces/finalize namespaces/status"),
			rule("delete deletecollection "+read, "*", "*")),
		clusterRole(controllerPrefix+"podcertificaterequestcleaner",
			rule("delete "+read, "certificates.k8s.io", "podcertificaterequests")),
		clusterRole(controllerPrefix+"resourcequota-controller",
			rule("list watch", "*", "*"),
			rule("update", core, "resourcequotas/status"),
			recording()),
		clusterRole(controllerPrefix+"root-ca-cert-publisher",
			rule("create update", core, "configmaps"),
			recording()),
		clusterRole(controllerPrefix+"service-account-controller",
			rule("create", core, "serviceaccounts"),
			recording()),
		clusterRole(controllerPrefix+"service-cidrs-controller",
			rule("get list "+change+" watch", "networking.k8s.io", "servicecidrs"),
			rule(change, "networking.k8s.io", "servicecidrs/finalizers"),
			rule(change, "networking.k8s.io", "servicecidrs/status"),
			rule(read, "networking.k8s.io", "ipaddresses"),
			recording()),
		clusterRole(controllerPrefix+"storage-version-migrator-controller",
			rule("list patch", "*", "*"),
			rule("get", "apiextensions.k8s.io", "customresourcedefinitions"),
			rule("patch", "apiextensions.k8s.io", "customresourcedefinitions/status"),
			rule("update", "storagemigration.k8s.io", "storageversionmigrations/status")),
		clusterRole(controllerPrefix+"validatingadmissionpolicy-status-controller",
			rule(read, "admissionregistration.k8s.io", "validatingadmissionpolicies"),
			rule("get "+change, "admissionregistration.k8s.io", "validatingadmissionpolicies/status"),
			recording()),
	}
}
