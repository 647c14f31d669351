package explain

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Kind is a kind that is looked at.
type Kind struct{ Name, Group, Resource string }

// The kinds that hold others, or are held.
var (
	Pods               = Kind{"Pod", "", "pods"}
	Nodes              = Kind{"Node", "", "nodes"}
	Namespaces         = Kind{"Namespace", "", "namespaces"}
	Claims             = Kind{"PersistentVolumeClaim", "", "persistentvolumeclaims"}
	Volumes            = Kind{"PersistentVolume", "", "persistentvolumes"}
	Quotas             = Kind{"ResourceQuota", "", "resourcequotas"}
	ServiceAccounts    = Kind{"ServiceAccount", "", "serviceaccounts"}
	Events             = Kind{"Event", "", "events"}
	Deployments        = Kind{"Deployment", "apps", "deployments"}
	ReplicaSets        = Kind{"ReplicaSet", "apps", "replicasets"}
	StatefulSets       = Kind{"StatefulSet", "apps", "statefulsets"}
	DaemonSets         = Kind{"DaemonSet", "apps", "daemonsets"}
	Jobs               = Kind{"Job", "batch", "jobs"}
	CronJobs           = Kind{"CronJob", "batch", "cronjobs"}
	Autoscalers        = Kind{"HorizontalPodAutoscaler", "autoscaling", "horizontalpodautoscalers"}
	Services           = Kind{"Service", "", "services"}
	Budgets            = Kind{"PodDisruptionBudget", "policy", "poddisruptionbudgets"}
	StorageClasses     = Kind{"StorageClass", "storage.k8s.io", "storageclasses"}
	Drivers            = Kind{"CSIDriver", "storage.k8s.io", "csidrivers"}
	APIServices        = Kind{"APIService", "apiregistration.k8s.io", "apiservices"}
	ValidatingWebhooks = Kind{"ValidatingWebhookConfiguration", "admissionregistration.k8s.io", "validatingwebhookconfigurations"}
	MutatingWebhooks   = Kind{"MutatingWebhookConfiguration", "admissionregistration.k8s.io", "mutatingwebhookconfigurations"}
	workloads          = map[string]Kind{"ReplicaSet": ReplicaSets, "StatefulSet": StatefulSets, "DaemonSet": DaemonSets, "Job": Jobs}
)

// Named is an object of the kind.
func (k Kind) Named(namespace, name string) Object {
	return Object{Kind: k.Name, Group: k.Group, Resource: k.Resource, Namespace: namespace, Name: name}
}

// of is the name of an object of the kind.
func (k Kind) of(o metav1.Object) Object { return k.Named(o.GetNamespace(), o.GetName()) }

// get returns an object, and whether there is one.
func get[T metav1.Object](w World, name Object) (T, bool) {
	object, ok := w.Get(name).(T)
	return object, ok
}

// list returns the objects of a kind in a namespace.
func list[T metav1.Object](w World, kind Kind, namespace string) []T {
	var all []T
	for _, o := range w.List(kind, namespace) {
		if object, ok := o.(T); ok {
			all = append(all, object)
		}
	}
	return all
}

// owned are the objects of a kind that the owner controls.
func owned[T metav1.Object](w World, kind Kind, owner metav1.Object) []T {
	var all []T
	for _, object := range list[T](w, kind, owner.GetNamespace()) {
		if metav1.IsControlledBy(object, owner) {
			all = append(all, object)
		}
	}
	return all
}
