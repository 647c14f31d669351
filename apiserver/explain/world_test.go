package explain

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

var now = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

// scene is a World made by hand.
type scene struct {
	objects   []Named
	judgement Judgement
	failing   map[Object][]Failure
	writes    map[uint64]Write
}

var _ World = (*scene)(nil)

func (s *scene) Now() time.Time                { return now }
func (s *scene) Judge(*corev1.Pod) Judgement   { return s.judgement }
func (s *scene) Failing(o Object) []Failure    { return s.failing[o] }
func (s *scene) Left(ns string, _ int) []Named { return s.in(ns, func(Object) bool { return true }) }

func (s *scene) Write(revision uint64) (Write, bool) {
	w, ok := s.writes[revision]
	return w, ok
}

func (s *scene) Get(o Object) metav1.Object {
	for _, named := range s.objects {
		if named.Object == o {
			return named.Meta
		}
	}
	return nil
}

func (s *scene) List(kind Kind, namespace string) (all []metav1.Object) {
	for _, named := range s.in(namespace, func(o Object) bool { return o.Kind == kind.Name }) {
		all = append(all, named.Meta)
	}
	return all
}

func (s *scene) in(namespace string, wanted func(Object) bool) (found []Named) {
	for _, named := range s.objects {
		if (namespace == "" || named.Object.Namespace == namespace) && wanted(named.Object) {
			found = append(found, named)
		}
	}
	return found
}

// with adds objects of a kind, whose uid is their name.
func (s *scene) with(kind Kind, objects ...metav1.Object) *scene {
	for _, o := range objects {
		if o.GetUID() == "" {
			o.SetUID(types.UID(kind.Name + "-" + o.GetName()))
		}
		s.objects = append(s.objects, Named{kind.of(o), o})
	}
	return s
}

// explain asks about the object.
func (s *scene) explain(t *testing.T, name Object) Answer {
	t.Helper()
	object := s.Get(name)
	if object == nil {
		t.Fatalf("the scene has no %s", name)
	}
	return Explain(s, name, object)
}

func meta(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Namespace: "n", Name: name} }

func unbound(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name} }

// ownedBy makes the object one that the owner controls.
func ownedBy[T metav1.Object](object T, kind Kind, owner string) T {
	yes := true
	object.SetOwnerReferences([]metav1.OwnerReference{{
		Kind: kind.Name, Name: owner, UID: types.UID(kind.Name + "-" + owner), Controller: &yes, BlockOwnerDeletion: &yes,
	}})
	return object
}

func deleted[T metav1.Object](object T, finalizers ...string) T {
	at := metav1.NewTime(now.Add(-time.Hour))
	object.SetDeletionTimestamp(&at)
	object.SetFinalizers(finalizers)
	return object
}

func aNode(name string, ready bool) *corev1.Node {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	return &corev1.Node{ObjectMeta: unbound(name), Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status, Reason: "NodeStatusUnknown", Message: "silent"},
	}}}
}

// aPod is ready on node a.
func aPod(name string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: meta(name), Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{Name: "c", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
		},
	}
}

// waiting is a pod without a node.
func waiting(name string) *corev1.Pod {
	pod := aPod(name)
	pod.Spec.NodeName, pod.Status = "", corev1.PodStatus{Phase: corev1.PodPending}
	return pod
}

func using(pod *corev1.Pod, claims ...string) *corev1.Pod {
	for _, claim := range claims {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: claim, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim},
		}})
	}
	return pod
}

// unready is on node a with a container in the state.
func unready(name string, status corev1.ContainerStatus) *corev1.Pod {
	pod := aPod(name)
	pod.Status.Conditions = nil
	pod.Status.ContainerStatuses[0].Name = "sidecar"
	pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
	return pod
}

// refused is a judgement by which one plugin refuses node a; node b is refused by two.
func refused(plugin, reason, remedy string, object *corev1.Node, free int64) Judgement {
	r := Refusal{Plugin: plugin, Reasons: []string{reason}, Remedies: []string{remedy}}
	other := Refusal{Plugin: "NodeName", Reasons: []string{"other"}, Remedies: []string{"it were another"}}
	return Judgement{
		Message: "0/2 nodes are available: " + reason + ".", Plugins: []string{plugin, "NodePorts", "VolumeZone", "NodeName"},
		Nodes: []JudgedNode{
			{Node: Node{"b", []Refusal{other, r}}, Object: aNode("b", true)},
			{Node: Node{object.Name, []Refusal{r}}, Object: object, FreeMilliCPU: free},
		},
	}
}

// flat are all causes below an answer.
func flat(causes []Cause) (all []Cause) {
	for _, c := range causes {
		all = append(append(all, c), flat(c.Causes)...)
	}
	return all
}

func names(suspects []Suspect) string {
	var all []string
	for _, s := range suspects {
		all = append(all, s.Object.String()+": "+s.Why)
	}
	return strings.Join(all, "\n")
}
