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
	controllerLeader     = "system::leader-locking-kube-controller-manager"
	schedulerLeader      = "system::leader-locking-kube-scheduler"
)

// Roles returns the roles of kube-system.
func Roles() []*rbacv1.Role {
	leading := func() rbacv1.PolicyRule {
		return rule(read+" create update", "coordination.k8s.io", "leases leasecandidates")
	}
	return []*rbacv1.Role{
		role(authenticationReader, named(read, core, "configmaps", "extension-apiserver-authentication")),
		role(controllerLeader, leading()),
		role(schedulerLeader, leading()),
	}
}

func role(name string, rules ...rbacv1.PolicyRule) *rbacv1.Role {
	return &rbacv1.Role{ObjectMeta: marked(name, metav1.NamespaceSystem), Rules: rules}
}

// RoleBindings returns who holds which role in kube-system.
func RoleBindings() []*rbacv1.RoleBinding {
	return []*rbacv1.RoleBinding{
		binding("system::"+authenticationReader, authenticationReader, person(user.KubeControllerManager), person(user.KubeScheduler)),
		binding(controllerLeader, controllerLeader, person(user.KubeControllerManager), account("kube-controller-manager"), account("leader-election-controller")),
		binding(schedulerLeader, schedulerLeader, person(user.KubeScheduler), account("kube-scheduler")),
	}
}

func binding(name, role string, subjects ...rbacv1.Subject) *rbacv1.RoleBinding {
	return &rbacv1.RoleBinding{
		ObjectMeta: marked(name, metav1.NamespaceSystem), Subjects: subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
	}
}
