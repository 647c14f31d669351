package simulated

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

// TestInformersOfOthers have run before the fleet comes, hold more than its nodes and pods, and go on when it ends: it lists and watches
// nothing itself, and plays its own pods alone.
func TestInformersOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
		client := fake.NewClientset(
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "ours"}, Status: ready}, boundPod("before", "ours"),
			&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "theirs"}, Status: ready}, boundPod("their", "theirs"), boundPod("waits", ""),
		)
		others, stopOthers := context.WithCancel(t.Context())
		factory := informers.NewSharedInformerFactory(client, 0)
		pods := factory.Core().V1().Pods()
		pods.Informer()
		factory.Core().V1().Nodes().Informer()
		factory.StartWithContext(others)
		synctest.Wait()
		client.ClearActions()

		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- Run(ctx, Config{Client: client, Informers: factory, Adopted: []string{"ours"}}) }()
		synctest.Wait()
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), boundPod("after", "ours"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for name, want := range map[string]corev1.PodPhase{"before": corev1.PodRunning, "after": corev1.PodRunning, "their": "", "waits": ""} {
			if pod, err := pods.Lister().Pods("default").Get(name); err != nil || pod.Status.Phase != want {
				t.Errorf("%s: %v, %v, want %q", name, pod, err, want)
			}
		}
		for _, action := range client.Actions() {
			if slices.Contains([]string{"list", "watch"}, action.GetVerb()) {
				t.Errorf("%s %s", action.GetVerb(), action.GetResource())
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := client.CoreV1().Pods("default").Create(t.Context(), boundPod("later", "ours"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if pod, err := pods.Lister().Pods("default").Get("later"); err != nil || pod.Status.Phase != "" {
			t.Errorf("the informers have ended with the fleet, or it goes on: %v, %v", pod, err)
		}
		stopOthers()
		factory.Shutdown()
	})
}
