package explain

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/ptr"
)

var configMaps = Kind{"ConfigMap", "", "configmaps"}

// heldMap has a finalizer that nobody here removes.
func heldMap() *corev1.ConfigMap {
	m := deleted(ownedBy(&corev1.ConfigMap{ObjectMeta: meta("held")}, StatefulSets, "db"), "kubernetes.io/other", "example.com/keep")
	m.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "backup", FieldsV1: metav1.NewFieldsV1(`{"f:metadata":{"f:finalizers":{"v:\"example.com/keep\"":{}}}}`)}}
	m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: "j"})
	return m
}

const heldCommand = `kubectl -n n patch configmaps held --type=json -p ` +
	`'[{"op":"test","path":"/metadata/finalizers/1","value":"example.com/keep"},{"op":"remove","path":"/metadata/finalizers/1"}]'`

func aNamespace(conditions ...corev1.NamespaceCondition) *scene {
	ns := deleted(&corev1.Namespace{ObjectMeta: unbound("n")})
	ns.Spec.Finalizers = []corev1.FinalizerName{corev1.FinalizerKubernetes}
	ns.Status.Conditions = append(conditions,
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionContentFailure, Status: corev1.ConditionFalse, Message: "all deleted"},
		corev1.NamespaceCondition{Type: corev1.NamespaceDeletionGVParsingFailure, Status: corev1.ConditionFalse, Message: "all parsed"})
	return (&scene{}).with(Namespaces, ns)
}

func anAPIService(name string, status apiregistrationv1.ConditionStatus) *apiregistrationv1.APIService {
	return &apiregistrationv1.APIService{
		ObjectMeta: unbound(name), Spec: apiregistrationv1.APIServiceSpec{Service: &apiregistrationv1.ServiceReference{}},
		Status: apiregistrationv1.APIServiceStatus{Conditions: []apiregistrationv1.APIServiceCondition{{Type: apiregistrationv1.Available, Status: status, Reason: "ServiceNotFound", Message: "gone"}}},
	}
}

func endingScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"finalizer nobody removes": func() wanted {
			return wanted{
				scene: (&scene{}).with(configMaps, heldMap()), of: configMaps.Named("n", "held"), guilty: configMaps.Named("n", "held"),
				what: "example.com/keep is not removed (backup set it)", command: heldCommand,
				innocent: [][2]string{{"StatefulSet/db", "owner"}, {"Job/j", "owner"}},
			}
		},
		"the same in a namespace": func() wanted {
			return wanted{
				scene: aNamespace().with(configMaps, heldMap(), &corev1.ConfigMap{ObjectMeta: meta("free")}), of: Namespaces.Named("", "n"),
				guilty: configMaps.Named("n", "held"), what: "example.com/keep", command: heldCommand,
				innocent: [][2]string{{"Namespace/n", "all deleted"}, {"Namespace/n", "all parsed"}},
			}
		},
		"dead APIService": func() wanted {
			s := aNamespace(corev1.NamespaceCondition{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: corev1.ConditionTrue, Message: "Discovery failed"}).
				with(APIServices, anAPIService("v1.dead", apiregistrationv1.ConditionFalse), anAPIService("v1.lives", apiregistrationv1.ConditionTrue),
					&apiregistrationv1.APIService{ObjectMeta: unbound("v1.local")})
			return wanted{
				scene: s, of: Namespaces.Named("", "n"), guilty: APIServices.Named("", "v1.dead"), what: "ServiceNotFound: gone",
				command: "kubectl delete apiservices.apiregistration.k8s.io v1.dead", innocent: [][2]string{{"APIService/v1.lives", "answers"}, {"Namespace/n", "all deleted"}},
			}
		},
		"claim in use": func() wanted {
			s := (&scene{}).with(Claims, deleted(ownedBy(aClaim("data", "fast", corev1.ClaimBound), StatefulSets, "db"), "kubernetes.io/pvc-protection")).
				with(Pods, using(aPod("user"), "data"), aPod("other"))
			claim := s.Get(Claims.Named("n", "data")).(*corev1.PersistentVolumeClaim)
			claim.OwnerReferences = append(claim.OwnerReferences, metav1.OwnerReference{Kind: "Job", Name: "j"})
			return wanted{
				scene: s, of: Claims.Named("n", "data"), guilty: Pods.Named("n", "user"), what: "uses the claim", command: "kubectl -n n delete pod user",
				innocent: [][2]string{{"StatefulSet/db", "owner"}, {"Job/j", "owner"}},
			}
		},
		"dependents of an owner": func() wanted {
			s := (&scene{}).with(StatefulSets, deleted(&appsv1.StatefulSet{ObjectMeta: meta("db")}, metav1.FinalizerDeleteDependents)).with(configMaps, heldMap()).
				with(Pods, deleted(ownedBy(aPod("db-0"), StatefulSets, "db")))
			set := s.Get(StatefulSets.Named("n", "db")).(*appsv1.StatefulSet)
			set.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j"}, {Kind: "Job", Name: "k"}}
			return wanted{
				scene: s, of: StatefulSets.Named("n", "db"), guilty: configMaps.Named("n", "held"), what: "example.com/keep", command: heldCommand,
				innocent: [][2]string{{"Job/j", "owner"}, {"Job/k", "owner"}},
			}
		},
		"pod of a node that is gone": func() wanted {
			s := (&scene{}).with(Pods, deleted(ownedBy(aPod("p"), ReplicaSets, "r"))).with(Nodes, aNode("b", true))
			return wanted{
				scene: s, of: Pods.Named("n", "p"), guilty: Nodes.Named("", "a"), what: "does not exist", command: "kubectl -n n delete pod p --force",
				innocent: [][2]string{{"Pod/p", "no finalizers"}, {"ReplicaSet/r", "owner"}},
			}
		},
	}
}

// aBudget guards pods with the label, all of which are healthy.
func aBudget(name, app string, healthy, desired int32) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: meta(name), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: ptr.To(intstr.FromInt32(desired)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}},
		Status: policyv1.PodDisruptionBudgetStatus{ExpectedPods: healthy, CurrentHealthy: healthy, DesiredHealthy: desired, DisruptionsAllowed: healthy - desired},
	}
}

// drainScene is a cordoned node with a guarded pod, a free one and one of a DaemonSet.
func drainScene(budgets ...metav1.Object) *scene {
	node := aNode("a", true)
	node.Spec.Unschedulable = true
	guarded, free := aPod("guarded"), aPod("free")
	guarded.Labels, free.Labels = map[string]string{"app": "web"}, map[string]string{"app": "other"}
	return (&scene{}).with(Nodes, node).with(Pods, guarded, free, ownedBy(aPod("ds"), DaemonSets, "ds")).with(Budgets, append(budgets, aBudget("loose", "other", 2, 1))...)
}

func drainScenes() map[string]func() wanted {
	return map[string]func() wanted{
		"budget that blocks a drain": func() wanted {
			return wanted{
				scene: drainScene(aBudget("tight", "web", 1, 1)), of: Nodes.Named("", "a"), guilty: Budgets.Named("n", "tight"),
				what:     "needs 1 healthy pods and has 1 currently",
				command:  `kubectl -n n patch poddisruptionbudgets.policy tight --type=merge -p '{"spec":{"maxUnavailable":null,"minAvailable":0}}'`,
				innocent: [][2]string{{"Pod/free", "may be evicted"}, {"PodDisruptionBudget/loose", "does not guard"}},
			}
		},
		"the pod": func() wanted {
			w := drainScenes()["budget that blocks a drain"]()
			w.of, w.innocent = Pods.Named("n", "guarded"), [][2]string{{"PodDisruptionBudget/loose", "does not guard"}, {"Node/a", "Ready"}}
			return w
		},
		"pods that are not ready": func() wanted {
			budget := aBudget("tight", "web", 1, 2)
			budget.Status.ExpectedPods, budget.Status.DisruptionsAllowed = 2, 0
			sick := unready("sick", running("c"))
			sick.Spec.NodeName, sick.Labels = "b", map[string]string{"app": "web"}
			w := drainScenes()["budget that blocks a drain"]()
			w.scene = drainScene(budget).with(Pods, sick).with(Nodes, aNode("b", true))
			w.guilty, w.what, w.command = Pods.Named("n", "sick"), "readiness probe", ""
			return w
		},
		"two budgets": func() wanted {
			w := drainScenes()["budget that blocks a drain"]()
			w.scene = drainScene(aBudget("one", "web", 3, 1), aBudget("two", "web", 3, 1))
			w.guilty, w.what = Budgets.Named("n", "two"), "more than one PodDisruptionBudget"
			w.command = "kubectl -n n delete poddisruptionbudgets.policy two"
			return w
		},
	}
}
