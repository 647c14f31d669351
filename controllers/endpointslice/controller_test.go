package endpointslice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// bubble runs a test with one Service and one node.
func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n1"}})
		reconciletest.Add(w, service("web", map[string]string{"app": "web"}))
		w.Run(New())
		w.Settle()
		body(t, w)
	})
}

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"},
		Spec: corev1.ServiceSpec{Selector: selector, ClusterIP: "10.96.0.7", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt(8080), Protocol: corev1.ProtocolTCP}}},
	}
}

func pod(i int, node string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "ns", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: node},
		Status:     corev1.PodStatus{PodIPs: []corev1.PodIP{{IP: fmt.Sprintf("10.42.0.%d", i)}}},
	}
	reconciletest.SetReady(p, true)
	return p
}

// endpoints lists what stands behind all Services, as "service ip ready".
func endpoints(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			out = append(out, fmt.Sprintf("%s %s %v", s.Labels["kubernetes.io/service-name"], e.Addresses[0], *e.Conditions.Ready))
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func expect(t *testing.T, w *reconciletest.World, what, want string) {
	t.Helper()
	synctest.Wait()
	if got := endpoints(t, w); got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}

func TestFollowsPods(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, pod(1, "n1"))
		p := reconciletest.Add(w, pod(2, "n1"))
		w.Settle()
		expect(t, w, "two ready pods", "web 10.42.0.1 true, web 10.42.0.2 true")
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		reconciletest.SetReady(p, false)
		w.Put(p)
		expect(t, w, "one unready, without any time passing", "web 10.42.0.1 true, web 10.42.0.2 false")
		w.RemovePod(p)
		expect(t, w, "one gone", "web 10.42.0.1 true")
	})
}

// TestFailedWritesAreTold: the Service has an event when its slices cannot be written.
func TestFailedWritesAreTold(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		w.Intercept(func(string) reconciletest.Outcome { return reconciletest.Refused })
		reconciletest.Add(w, pod(1, "n1"))
		w.Settle()
		const want = "Warning FailedToUpdateEndpointSlices Error updating Endpoint Slices for Service ns/web: "
		if events := w.Events.List(); len(events) == 0 || !strings.HasPrefix(events[len(events)-1], want) {
			t.Errorf("events: %q", events)
		}
		w.Intercept(nil)
	})
}

func TestFollowsTheSelector(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, pod(1, "n1"))
		w.Settle()
		s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		s.Spec.Selector = map[string]string{"app": "other"}
		if s, err = w.Client.CoreV1().Services("ns").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		expect(t, w, "other selector", "")
		s.Spec.Selector = map[string]string{"app": "web"}
		if _, err = w.Client.CoreV1().Services("ns").Update(t.Context(), s, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.Settle()
		expect(t, w, "back", "web 10.42.0.1 true")
	})
}

func TestWaitsForANodeAndLeavesOthersAlone(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		reconciletest.Add(w, service("manual", nil))
		reconciletest.Add(w, pod(3, "n2"))
		w.Settle()
		expect(t, w, "before the node", "")
		reconciletest.Add(w, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n2"}})
		expect(t, w, "with the node", "web 10.42.0.3 true")
	})
}
