package policy

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/serviceaccount"
	"k8s.io/apiserver/pkg/authentication/user"
)

// ClusterRoleBindings returns who holds which role of the cluster; they are the caller's.
func ClusterRoleBindings() []*rbacv1.ClusterRoleBinding {
	return append([]*rbacv1.ClusterRoleBinding{
		clusterBinding("cluster-admin", group(user.SystemPrivilegedGroup)),
		clusterBinding("system:basic-user", group(user.AllAuthenticated)),
		clusterBinding("system:discovery", group(user.AllAuthenticated)),
		clusterBinding("system:public-info-viewer", group(user.AllAuthenticated), group(user.AllUnauthenticated)),
		clusterBinding("system:service-account-issuer-discovery", group(serviceaccount.AllServiceAccountsGroup)),
		clusterBinding("system:cluster-trust-bundle-discovery", group(serviceaccount.AllServiceAccountsGroup)),
		// A node renews its certificate by itself, and a machine with a bootstrap token gets its first.
		clusterBinding("system:certificates.k8s.io:certificatesigningrequests:selfnodeclient", group(user.NodesGroup)),
		clusterBinding("system:certificates.k8s.io:certificatesigningrequests:nodeclient", group("system:bootstrappers")),
		clusterBinding("system:node-bootstrapper", group("system:bootstrappers")),
		clusterBinding("system:monitoring", group(user.MonitoringGroup)),
		clusterBinding("system:node"), // apiserver/auth judges nodes
		clusterBinding("system:node-proxier", person(user.KubeProxy)),
		clusterBinding("system:kube-controller-manager", person(user.KubeControllerManager)),
		clusterBinding("system:kube-dns", account("kube-dns")),
		clusterBinding("system:kube-scheduler", person(user.KubeScheduler)),
		clusterBinding("system:volume-scheduler", person(user.KubeScheduler)),
	}, controllerBindings()...)
}

func clusterBinding(role string, subjects ...rbacv1.Subject) *rbacv1.ClusterRoleBinding {
	return &rbacv1.ClusterRoleBinding{
		ObjectMeta: marked(role, ""), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
}

func group(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: name}
}

func person(name string) rbacv1.Subject {
	return rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}
}

// account is a service account of kube-system.
func account(name string) rbacv1.Subject {
	return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: metav1.NamespaceSystem, Name: name}
}

const (
	authenticationReader = "extension-apiserver-authentication-reader"
	leaderPrefix         = "system::leader-locking-"

	// What reads and ends the tokens by which machines join, and what cloud providers
	// keep: parts of upstream which may run beside ours.
	bootstrapSigner = "bootstrap-signer"
	tokenCleaner    = "token-cleaner"
	cloudProvider   = "cloud-provider"
)

// Roles returns the roles of kube-system and kube-public.
func Roles() []*rbacv1.Role {
	return []*rbacv1.Role{
		role(metav1.NamespaceSystem, authenticationReader, named(read, core, "configmaps", "extension-apiserver-authentication")),
		leader("kube-controller-manager"),
		leader("kube-scheduler"),
		role(metav1.NamespaceSystem, controllerPrefix+bootstrapSigner, rule(read, core, "secrets")),
		role(metav1.NamespaceSystem, controllerPrefix+cloudProvider, rule("create "+read, core, "configmaps")),
		role(metav1.NamespaceSystem, controllerPrefix+tokenCleaner, rule(read+" delete", core, "secrets"), recording()),
		role(metav1.NamespacePublic, controllerPrefix+bootstrapSigner,
			rule(read, core, "configmaps"),
			named("update", core, "configmaps", "cluster-info"),
			recording()),
	}
}

// leader is the role of a part whose replicas agree on one of them by a Lease.
func leader(part string) *rbacv1.Role {
	return role(metav1.NamespaceSystem, leaderPrefix+part,
		rule(read+" create update", "coordination.k8s.io", "leases"),
		rule(read+" create update", "coordination.k8s.io", "leasecandidates"))
}

func role(namespace, name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: marked(name, namespace), Rules: rules}
}

// RoleBindings returns who holds which role in kube-system and kube-public.
func RoleBindings() []*rbacv1.RoleBinding {
	return []*rbacv1.RoleBinding{
		binding(
			metav1.NamespaceSystem,
			"system::"+authenticationReader,
			authenticationReader,
			person(user.KubeControllerManager),
			person(user.KubeScheduler),
		),
		bindingOf(metav1.NamespaceSystem, leaderPrefix+"kube-controller-manager",
			person(user.KubeControllerManager), account("kube-controller-manager"), account("leader-election-controller")),
		bindingOf(metav1.NamespaceSystem, leaderPrefix+"kube-scheduler", person(user.KubeScheduler), account("kube-scheduler")),
		bindingOf(metav1.NamespaceSystem, controllerPrefix+bootstrapSigner, account(bootstrapSigner)),
		bindingOf(metav1.NamespaceSystem, controllerPrefix+cloudProvider, account(cloudProvider)),
		bindingOf(metav1.NamespaceSystem, controllerPrefix+tokenCleaner, account(tokenCleaner)),
		bindingOf(metav1.NamespacePublic, controllerPrefix+bootstrapSigner, account(bootstrapSigner)),
	}
}

// bindingOf is a binding that bears its role's name.
func bindingOf(namespace, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return binding(namespace, role, role, subjects...)
}

func binding(namespace, name, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: marked(name, namespace), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
}
