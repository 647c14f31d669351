package policy

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Marks of what every cluster has.
const (
	labelKey         = "kubernetes.io/bootstrapping"
	labelValue       = "rbac-defaults"
	aggregationLabel = "rbac.authorization.k8s.io/aggregate-to-"
)

// ClusterRoles returns the roles of the cluster; they are the caller's.
func ClusterRoles() []*rbacv1.ClusterRole {
	return slices.Concat(forEverybody(), forPeople(), forNodes(), forParts(), forSigning(), forControllers())
}

func clusterRole(name string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	return &rbacv1.ClusterRole{ObjectMeta: marked(name, ""), Rules: rules}
}

func marked(name, namespace string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: namespace, Labels: map[string]string{labelKey: labelValue},
		Annotations: map[string]string{rbacv1.AutoUpdateAnnotationKey: "true"},
	}
}

// forEverybody: what it takes to find out about a cluster and about oneself.
func forEverybody() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole("system:public-info-viewer", paths("/livez /readyz /healthz /version /version/")),
		clusterRole("system:discovery",
			paths("/livez /readyz /healthz /version /version/ /openapi /openapi/* /api /api/* /apis /apis/*")),
		clusterRole("system:basic-user",
			rule("create", "authorization.k8s.io", "selfsubjectaccessreviews selfsubjectrulesreviews"),
			rule("create", "authentication.k8s.io", "selfsubjectreviews")),
		clusterRole("system:service-account-issuer-discovery",
			paths("/.well-known/openid-configuration /.well-known/openid-configuration/ /openid/v1/jwks /openid/v1/jwks/")),
		clusterRole("system:cluster-trust-bundle-discovery", rule(read, "certificates.k8s.io", "clustertrustbundles")),
		clusterRole("system:monitoring",
			paths("/metrics /metrics/slis /livez /readyz /healthz /livez/* /readyz/* /healthz/* /flagz /statusz"),
			rule("get", core, "nodes/metrics")),
	}
}

// forPeople: the ladder view, edit, admin, cluster-admin. The first three gather
// what other roles, the user's own among them, add by label.
func forPeople() []*rbacv1.ClusterRole {
	return []*rbacv1.ClusterRole{
		clusterRole("cluster-admin", rule("*", "*", "*"), rbacv1.PolicyRule{Verbs: []string{"*"}, NonResourceURLs: []string{"*"}}),
		gathering("admin", ""), gathering("edit", "admin"), gathering("view", "edit"),
		adding("view", viewing()...), adding("edit", editing()...),
		adding("admin",
			rule("create", "authorization.k8s.io", "localsubjectaccessreviews"),
			rule(readWrite, rbacv1.GroupName, "roles rolebindings")),
		measuring(),
	}
}

// measuring adds what nodes and pods use to all who may view, as metrics-server's role of this name does.
func measuring() *rbacv1.ClusterRole {
	role := clusterRole("system:aggregated-metrics-reader", rule(read, "metrics.k8s.io", "nodes pods"))
	for _, to := range []string{"view", "edit", "admin"} {
		role.Labels[aggregationLabel+to] = "true"
	}
	return role
}

// gathering is a role made of those that add to it, and that adds itself to another.
func gathering(name, to string) *rbacv1.ClusterRole {
	role := clusterRole(name)
	role.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{
		{MatchLabels: map[string]string{aggregationLabel + name: "true"}},
	}}
	if to != "" {
		role.Labels[aggregationLabel+to] = "true"
	}
	return role
}

func adding(to string, rules ...rbacv1.PolicyRule) *rbacv1.ClusterRole {
	role := clusterRole("system:aggregate-to-"+to, rules...)
	role.Labels[aggregationLabel+to] = "true"
	return role
}

// viewing is everything of a namespace that gives no power: no secrets, no roles.
func viewing() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		rule(
			read,
			core,
			"bindings configmaps endpoints limitranges namespaces namespaces/status persistentvolumeclaims persistentvolumeclaims/status "+
				"pods pods/log pods/status replicationcontrollers replicationcontrollers/scale replicationcontrollers/status "+
				"resourcequotas resourcequotas/status serviceaccounts services services/status",
		),
		rule(read, core+" events.k8s.io", "events"),
		rule(read, "discovery.k8s.io", "endpointslices"),
		rule(read, "apps", "controllerrevisions daemonsets daemonsets/status deployments deployments/scale deployments/status "+
			"replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale statefulsets/status"),
		rule(read, "autoscaling", "horizontalpodautoscalers horizontalpodautoscalers/status"),
		rule(read, "batch", "cronjobs cronjobs/status jobs jobs/status"),
		rule(
			read,
			"extensions",
			"daemonsets daemonsets/status deployments deployments/scale deployments/status ingresses ingresses/status "+
				"networkpolicies replicasets replicasets/scale replicasets/status replicationcontrollers/scale",
		),
		rule(read, "networking.k8s.io", "ingresses ingresses/status networkpolicies"),
		rule(read, "policy", "poddisruptionbudgets poddisruptionbudgets/status"),
		rule(read, "resource.k8s.io", "resourceclaims resourceclaims/status resourceclaimtemplates"),
	}
}

// editing is to run programs in a namespace, with all that its service accounts may.
func editing() []rbacv1.PolicyRule {
	streams := "pods/attach pods/exec pods/portforward pods/proxy"
	return []rbacv1.PolicyRule{
		rule(read, core, streams+" secrets services/proxy"),
		rule("impersonate", core, "serviceaccounts"),
		rule("create", core, "pods/eviction serviceaccounts/token"),
		rule(
			write,
			core,
			streams+" configmaps persistentvolumeclaims pods replicationcontrollers replicationcontrollers/scale secrets serviceaccounts services services/proxy",
		),
		rule(write, core+" events.k8s.io", "events"),
		rule(
			write,
			"apps",
			"daemonsets deployments deployments/rollback deployments/scale replicasets replicasets/scale statefulsets statefulsets/scale",
		),
		rule(write, "autoscaling", "horizontalpodautoscalers"),
		rule(write, "batch", "cronjobs jobs"),
		rule(write, "extensions", "daemonsets deployments deployments/rollback deployments/scale ingresses networkpolicies "+
			"replicasets replicasets/scale replicationcontrollers/scale"),
		rule(write, "networking.k8s.io", "ingresses networkpolicies"),
		rule(write, "policy", "poddisruptionbudgets"),
		rule(write, "resource.k8s.io", "resourceclaims resourceclaimtemplates"),
		rule(readWrite, "coordination.k8s.io", "leases"),
	}
}
