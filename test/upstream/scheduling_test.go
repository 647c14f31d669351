package upstream

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint"
)

// own is the label of a scenario's own node.
const own = "example.com/scenario"

// TestScheduling plays scenarios of the scheduler, each on a node of its own, whose pods ask for it.
func TestScheduling(t *testing.T) {
	scenarios := map[string]func(*onNode){
		"a-pod-that-fits-later":           fitsLater,
		"a-pod-in-the-way-of-an-affinity": inTheWay,
		"a-volume-for-one-pod":            volumeForOne,
		"a-promise-moves":                 promiseMoves,
	}
	client, access := started(t, setpoint.Config{SimulatedNodes: len(scenarios)})
	for name, value := range map[string]int32{"middle": 50, "high": 100} {
		class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: name}, Value: value}
		if _, err := client.SchedulingV1().PriorityClasses().Create(t.Context(), class, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	i := 0
	for name, scenario := range scenarios {
		i++
		node := fmt.Sprint("sim-", i)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &onNode{in(t, client, access, name), node}
			s.patchNode(`{"metadata":{"labels":{"` + own + `":"` + name + `"}}}`)
			scenario(s)
		})
	}
}

// onNode is a scenario with a node.
type onNode struct {
	*play
	node string
}

func (s *onNode) patchNode(patch string) {
	s.Helper()
	s.see(patch, func(ctx context.Context) (string, bool) {
		_, err := s.client.CoreV1().Nodes().Patch(ctx, s.node, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
		return fmt.Sprint(err), err == nil
	})
}

// ask makes a pod that wants the scenario's node, and most of it unless change says otherwise.
func (s *onNode) ask(name, class string, change func(*corev1.Pod)) {
	s.Helper()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": name}}, Spec: template().Spec}
	pod.Spec.NodeSelector, pod.Spec.PriorityClassName = map[string]string{own: s.namespace}, class
	if change != nil {
		change(pod)
	}
	_, err := s.client.CoreV1().Pods(s.namespace).Create(s.Context(), pod, metav1.CreateOptions{})
	s.must(err)
}

func most(pod *corev1.Pod) {
	pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("20")}
}

func (s *onNode) seePlaced(name string) {
	s.Helper()
	s.seePod(name, name+" is placed", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == s.node })
}

func (s *onNode) seeUnschedulable(name string) {
	s.Helper()
	s.seePod(name, name+" fits nowhere", func(pod *corev1.Pod) bool {
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse && c.Reason == corev1.PodReasonUnschedulable {
				return true
			}
		}
		return false
	})
}

func nearby(app string) []corev1.PodAffinityTerm {
	return []corev1.PodAffinityTerm{{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}}}
}

// fitsLater: each cause in turn, and what ends it.
func fitsLater(s *onNode) {
	s.patchNode(`{"spec":{"unschedulable":true}}`)
	s.ask("cordoned", "", nil)
	s.seeUnschedulable("cordoned")
	s.patchNode(`{"spec":{"unschedulable":null}}`)
	s.seePlaced("cordoned")

	s.patchNode(`{"spec":{"taints":[{"key":"example.com/t","effect":"NoSchedule"}]}}`)
	s.ask("repelled", "", nil)
	s.seeUnschedulable("repelled")
	s.patchNode(`{"spec":{"taints":null}}`)
	s.seePlaced("repelled")

	s.ask("labeled", "", func(pod *corev1.Pod) { pod.Spec.NodeSelector["example.com/disk"] = "fast" })
	s.seeUnschedulable("labeled")
	s.patchNode(`{"metadata":{"labels":{"example.com/disk":"fast"}}}`)
	s.seePlaced("labeled")

	s.ask("lonely", "", func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: nearby("friend")}}
	})
	s.seeUnschedulable("lonely")
	s.ask("friend", "", nil)
	s.seePlaced("lonely")

	s.ask("first", "", most)
	s.seePlaced("first")
	s.ask("second", "", most)
	s.seeUnschedulable("second")
	s.must(s.client.CoreV1().Pods(s.namespace).Delete(s.Context(), "first", metav1.DeleteOptions{}))
	s.seePlaced("second")
}

// inTheWay: a pod that wants no other beside it is evicted for one that matters more.
func inTheWay(s *onNode) {
	s.ask("hermit", "", func(pod *corev1.Pod) {
		pod.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: nearby("guest")}}
	})
	s.ask("other", "", nil)
	s.seePlaced("hermit")
	s.seePlaced("other")
	s.ask("guest", "high", nil)
	s.seePlaced("guest")
	s.see("only the hermit goes", func(ctx context.Context) (string, bool) {
		_, hermit := s.client.CoreV1().Pods(s.namespace).Get(ctx, "hermit", metav1.GetOptions{})
		_, other := s.client.CoreV1().Pods(s.namespace).Get(ctx, "other", metav1.GetOptions{})
		return fmt.Sprint(hermit, other), gone(hermit) && other == nil
	})
}

// volumeForOne: the user of a volume that one pod may use goes for one that matters more, and stays before one that does not.
func volumeForOne(s *onNode) {
	class := ""
	volume := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}, Spec: corev1.PersistentVolumeSpec{
		PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/tmp/none"}},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		AccessModes:            []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}}}
	_, err := s.client.CoreV1().PersistentVolumes().Create(s.Context(), volume, metav1.CreateOptions{})
	s.must(err)
	wanted := claim()
	wanted.Spec.StorageClassName, wanted.Spec.AccessModes, wanted.Spec.VolumeName = &class, volume.Spec.AccessModes, volume.Name
	_, err = s.client.CoreV1().PersistentVolumeClaims(s.namespace).Create(s.Context(), &wanted, metav1.CreateOptions{})
	s.must(err)
	using := func(pod *corev1.Pod) {
		pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}}
	}
	s.ask("user", "middle", using)
	s.seePlaced("user")
	s.ask("lesser", "", using)
	s.seeUnschedulable("lesser")
	s.ask("greater", "high", using)
	s.seePlaced("greater")
	s.see("the user goes", func(ctx context.Context) (string, bool) {
		_, err := s.client.CoreV1().Pods(s.namespace).Get(ctx, "user", metav1.GetOptions{})
		return fmt.Sprint(err), gone(err)
	})
}

// promiseMoves: while a victim goes its room is promised to the one that matters most, whoever it goes for.
func promiseMoves(s *onNode) {
	s.ask("victim", "", func(pod *corev1.Pod) { most(pod); pod.Finalizers = []string{held} })
	s.Cleanup(func() { s.letGo(context.Background()) })
	s.seePlaced("victim")
	s.ask("middle", "middle", most)
	promised := func(name, node string) {
		s.Helper()
		s.seePod(name, fmt.Sprintf("%s is promised %q", name, node), func(pod *corev1.Pod) bool { return pod.Status.NominatedNodeName == node })
	}
	promised("middle", s.node)
	s.seePod("victim", "it goes", func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	s.ask("high", "high", most)
	promised("high", s.node)
	s.letGo(s.Context())
	s.seePlaced("high")
	s.seePod("middle", "it waits", func(pod *corev1.Pod) bool { return pod.Spec.NodeName == "" })
}
