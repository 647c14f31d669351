package pods

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
)

func running(name, uid, container string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, UID: types.UID(uid)},
		Status: corev1.PodStatus{
			Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
			ContainerStatuses: []corev1.ContainerStatus{{ContainerID: container}},
		},
	}
}

// TestHarmed: a pod that lives on is no finding; one that is gone, ending, of another uid or container is one.
func TestHarmed(t *testing.T) {
	ending := running("ending", "3", "c")
	ending.DeletionTimestamp = new(metav1.Now())
	p := &Pods{born: map[string]life{"lives": {"1", "a"}, "gone": {"2", "b"}, "ending": {"3", "c"}, "replaced": {"4", "d"}, "restarted": {"5", "e"}}}
	now := []corev1.Pod{*running("lives", "1", "a"), *ending, *running("replaced", "9", "d"), *running("restarted", "5", "f")}
	want := []string{"ending is being deleted", "gone is gone", "replaced lives anew: {9 d}, was {4 d}", "restarted lives anew: {5 f}, was {5 e}"}
	if got := p.compare(now); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLivesWaitsForAll: nobody is taken as born before all are ready.
func TestLivesWaitsForAll(t *testing.T) {
	starting := running("starting", "2", "")
	starting.Status = corev1.PodStatus{Phase: corev1.PodPending}
	if born, err := lives(t.Context(), fake.NewClientset(running("ready", "1", "a"), starting)); err == nil {
		t.Errorf("born: %v", born)
	}
	born, err := lives(t.Context(), fake.NewClientset(running("ready", "1", "a")))
	if err != nil || born["ready"] != (life{"1", "a"}) {
		t.Errorf("%v %v", born, err)
	}
}

// TestCreate: one pod for each node, and a second try, after an answer that was lost, is no error.
func TestCreate(t *testing.T) {
	client := fake.NewClientset()
	p := &Pods{}
	if err := p.create(t.Context(), client); err == nil {
		t.Error("pods without nodes")
	}
	for _, name := range []string{"a", "b", "c"} {
		if _, err := client.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		if err := p.create(t.Context(), client); err != nil {
			t.Fatal(err)
		}
	}
	list, err := client.CoreV1().Pods(Namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 3 {
		t.Errorf("%d pods, %v", len(list.Items), err)
	}
}
