package disruption

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	fakediscovery "k8s.io/client-go/discovery/fake"
	scalefake "k8s.io/client-go/scale/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

var selectsWeb = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}

func newBudget(least intstr.IntOrString) *policyv1.PodDisruptionBudget {
	return &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "web"},
		Spec:       policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: selectsWeb},
	}
}

func newPod(name string, owners ...metav1.OwnerReference) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: map[string]string{"app": "web"}, OwnerReferences: owners},
		Spec:       corev1.PodSpec{NodeName: "n"},
	}
	reconciletest.SetReady(p, true)
	return p
}

func bubble(t *testing.T, body func(t *testing.T, w *reconciletest.World)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		w.Run(New())
		body(t, w)
	})
}

func statusOf(t *testing.T, w *reconciletest.World) policyv1.PodDisruptionBudgetStatus {
	t.Helper()
	b, err := w.Client.PolicyV1().PodDisruptionBudgets("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return b.Status
}

func condition(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	for _, c := range statusOf(t, w).Conditions {
		return c.Reason + ": " + c.Message
	}
	return ""
}

// TestWhatCannotBeCountedIsNotAllowed: and it is counted as soon as it can be.
func TestWhatCannotBeCountedIsNotAllowed(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "ss", UID: "ss"}, Spec: appsv1.StatefulSetSpec{Replicas: new(int32(2))}}
		b := newBudget(intstr.FromString("50%"))
		reconciletest.Add(w, b)
		w.Settle()
		reconciletest.Add(w, newPod("a", ref("StatefulSet", "apps/v1", "ss", "ss")))
		reconciletest.Add(w, newPod("b"))
		w.Settle()
		if got, want := condition(t, w), "SyncFailed: "+errNoClient.Error(); got != want || statusOf(t, w).DisruptionsAllowed != 0 {
			t.Errorf("%s, want %s; %d allowed", got, want, statusOf(t, w).DisruptionsAllowed)
		}
		w.Writes()
		time.Sleep(10 * time.Minute)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("it is told again: %v", writes)
		}
		reconciletest.Add(w, set)
		w.Settle()
		if s := statusOf(t, w); s.DisruptionsAllowed != 1 || s.ExpectedPods != 2 || condition(t, w) != "SufficientPods: " {
			t.Errorf("%+v", s)
		}
		events := strings.Join(w.Events.List(), "\n")
		for _, want := range []string{"Warning CalculateExpectedPodCountFailed Failed to calculate", "Warning UnmanagedPods Pods selected", "Normal NoPods No matching pods found"} {
			if strings.Count(events, want) != 1 {
				t.Errorf("want one %q in:\n%s", want, events)
			}
		}
	})
}

// TestEvictionsThatCameToNothing: after two minutes the pod counts again, in the budget and by its own condition.
func TestEvictionsThatCameToNothing(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		pod := newPod("a")
		target := corev1.PodCondition{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: "EvictionByEvictionAPI", LastTransitionTime: metav1.Now()}
		pod.Status.Conditions = append(pod.Status.Conditions, target)
		agent := newPod("b")
		target.Reason = corev1.PodReasonTerminationByKubelet
		agent.Status.Conditions = append(agent.Status.Conditions, target)
		b := newBudget(intstr.FromInt32(1))
		b.Status.DisruptedPods = map[string]metav1.Time{"a": metav1.Now()}
		reconciletest.Add(w, pod)
		reconciletest.Add(w, agent)
		w.Settle()
		reconciletest.Add(w, b)
		time.Sleep(2*time.Minute - time.Second)
		if s := statusOf(t, w); s.CurrentHealthy != 1 || len(s.DisruptedPods) != 1 {
			t.Errorf("before: %+v", s)
		}
		time.Sleep(2 * time.Second)
		if s := statusOf(t, w); s.CurrentHealthy != 2 || len(s.DisruptedPods) != 0 || s.DisruptionsAllowed != 1 {
			t.Errorf("after: %+v", s)
		}
		for name, want := range map[string]corev1.ConditionStatus{"a": corev1.ConditionFalse, "b": corev1.ConditionTrue} {
			pod, err := w.Client.CoreV1().Pods("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := pod.Status.Conditions[1]; got.Status != want || (want == corev1.ConditionFalse) != (got.Reason == "") {
				t.Errorf("%s: %+v", name, got)
			}
		}
		if events := strings.Join(w.Events.List(), "\n"); !strings.Contains(events, "NotDeleted Pod was expected by PDB ns/web to be deleted but it wasn't") {
			t.Errorf("events:\n%s", events)
		}
	})
}

// TestPodsOfSeveralBudgets: each counts them, and they are told once.
func TestPodsOfSeveralBudgets(t *testing.T) {
	bubble(t, func(t *testing.T, w *reconciletest.World) {
		other := newBudget(intstr.FromInt32(0))
		other.Name = "other"
		reconciletest.Add(w, newBudget(intstr.FromInt32(0)))
		reconciletest.Add(w, other)
		reconciletest.Add(w, newPod("a"))
		w.Settle()
		if s := statusOf(t, w); s.DisruptionsAllowed != 1 {
			t.Errorf("%+v", s)
		}
		if events := strings.Join(w.Events.List(), "\n"); strings.Count(events, "MultiplePodDisruptionBudgets") != 1 {
			t.Errorf("events:\n%s", events)
		}
	})
}

// TestScales reads the scale of a kind that no cache holds.
func TestScales(t *testing.T) {
	sites := schema.GroupVersionResource{Group: "e.com", Version: "v1", Resource: "sites"}
	jobs := schema.GroupVersionResource{Group: "batch", Version: "v1", Resource: "jobs"}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.AddSpecific(sites.GroupVersion().WithKind("Site"), sites, sites, meta.RESTScopeNamespace)
	mapper.AddSpecific(jobs.GroupVersion().WithKind("Job"), jobs, jobs, meta.RESTScopeNamespace)
	client := &scalefake.FakeScaleClient{}
	client.AddReactor("get", "*", func(a clienttesting.Action) (bool, runtime.Object, error) {
		switch name := a.(clienttesting.GetAction).GetName(); name {
		case "site":
			return true, &autoscalingv1.Scale{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "s"}, Spec: autoscalingv1.ScaleSpec{Replicas: 7}}, nil
		case "broken":
			return true, nil, errors.New("broken")
		default:
			return true, nil, apierrors.NewNotFound(a.GetResource().GroupResource(), name)
		}
	})
	discovery := &fakediscovery.FakeDiscovery{Fake: &clienttesting.Fake{Resources: []*metav1.APIResourceList{
		{GroupVersion: "e.com/v1", APIResources: []metav1.APIResource{{Name: "sites"}, {Name: "sites/scale", Group: "autoscaling", Version: "v1", Kind: "Scale"}}},
		{GroupVersion: "batch/v1", APIResources: []metav1.APIResource{{Name: "jobs"}}},
	}}}
	o := owners{scales: scales{mapper, client, discovery}}
	for name, c := range map[string]struct {
		ref  metav1.OwnerReference
		want int32
		err  string
	}{
		"another kind":          {ref("Site", "e.com/v1", "site", "s"), 7, ""},
		"another uid":           {ref("Site", "e.com/v1", "site", "t"), 0, `found no controllers for pod "a"`},
		"gone":                  {ref("Site", "e.com/v1", "gone", "s"), 0, `found no controllers for pod "a"`},
		"a Job":                 {ref("Job", "batch/v1", "j", "j"), 0, "jobs.batch does not implement the scale subresource"},
		"an error":              {ref("Site", "e.com/v1", "broken", "s"), 0, "broken"},
		"an unknown kind":       {ref("Thing", "e.com/v1", "t", "t"), 0, `no matches for kind "Thing" in version "e.com/v1"`},
		"no version of any API": {ref("Site", "a/b/c", "t", "t"), 0, "unexpected GroupVersion string: a/b/c"},
	} {
		got, err := o.scaleOf(t.Context(), []*corev1.Pod{newPod("a", c.ref), newPod("b", c.ref)})
		if got.pods != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
