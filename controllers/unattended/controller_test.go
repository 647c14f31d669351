package unattended

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// byZone is what nobody acts on.
var byZone = map[string]string{corev1.AnnotationTopologyMode: "Auto"}

// TestOneEventAnObject: over updates and terms, and none for what is served or older than events live.
func TestOneEventAnObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		controller := New()
		w.Warm(controller)
		w.Start()
		term := func(body func()) {
			ctx, cancel := context.WithCancel(w.Context())
			done := make(chan error)
			go func() { done <- controller.Start(ctx, w.Env()) }()
			body()
			time.Sleep(time.Second)
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		old := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "old", UID: "old", CreationTimestamp: metav1.NewTime(time.Now().Add(-2 * youth)), Annotations: byZone},
		}
		open := &corev1.Service{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "open", UID: "open", CreationTimestamp: metav1.Now(), Annotations: byZone},
		}
		plain := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "plain", UID: "plain", CreationTimestamp: metav1.Now()}}
		term(func() {
			for _, o := range []*corev1.Service{old, open, plain} {
				if _, err := w.Client.CoreV1().Services("default").Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
		})
		expectEvents(t, w)
		term(func() {
			open.Labels = map[string]string{"changed": "yes"}
			if _, err := w.Client.CoreV1().Services("default").Update(t.Context(), open, metav1.UpdateOptions{}); err != nil {
				t.Fatal(err)
			}
		})
		expectEvents(t, w)
	})
}

// expectEvents wants one about the open Service.
func expectEvents(t *testing.T, w *reconciletest.World) {
	t.Helper()
	list, err := w.Client.CoreV1().Events("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	about := map[string]int{}
	for _, e := range list.Items {
		about[e.InvolvedObject.APIVersion+" "+e.InvolvedObject.Kind+" "+e.InvolvedObject.Name]++
	}
	if len(list.Items) != 1 || about["v1 Service open"] != 1 {
		t.Errorf("events: %v", about)
	}
}
