package podautoscaler

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

// fake is one scale and the same use of CPU by all pods.
type fake struct {
	source
	mu    sync.Mutex // guards what is below
	use   int64
	scale autoscalingv1.Scale
	err   error
	// refusal is what a write of the scale gets, and refused when the last one did.
	refusal error
	refused time.Time
}

func (f *fake) Resource(context.Context, string, labels.Selector, corev1.ResourceName, string) (map[string]sample, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := sample{f.use, time.Now(), time.Minute}
	return map[string]sample{"p0": s, "p1": s}, f.err
}

func (f *fake) find(context.Context, *autoscalingv2.HorizontalPodAutoscaler) (target, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return target{scale: f.scale.DeepCopy()}, nil
}

func (f *fake) again(context.Context, target) (*autoscalingv1.Scale, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scale.DeepCopy(), nil
}

func (f *fake) update(_ context.Context, _ target, next *autoscalingv1.Scale) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refusal != nil {
		f.refused = time.Now()
		return f.refusal
	}
	f.scale.Spec.Replicas = next.Spec.Replicas
	return nil
}

// load sets what each pod uses.
func (f *fake) load(use int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.use = use
}

func (f *fake) replicas() int32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scale.Spec.Replicas
}

// bubble runs a body over two ready pods and one autoscaler whose target is met.
func bubble(t *testing.T, body func(w *reconciletest.World, f *fake)) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		f := &fake{use: 500}
		f.scale.Spec.Replicas, f.scale.Status.Replicas, f.scale.Status.Selector = 2, 2, "app=web"
		w.Run(with(func(*reconcile.Env) (outside, error) { return outside{f, f}, nil }))
		reconciletest.Add(w, pod("p0", true))
		reconciletest.Add(w, pod("p1", true))
		w.Settle()
		reconciletest.Add(w, autoscaler(1, 10))
		w.Settle()
		body(w, f)
	})
}

func TestAnIdleAutoscalerWritesNothing(t *testing.T) {
	bubble(t, func(w *reconciletest.World, _ *fake) {
		if diff := cmp.Diff([]string{"update horizontalpodautoscalers/status ns/a"}, w.Writes()); diff != "" {
			t.Error(diff)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("nothing has changed, and yet: %v", writes)
		}
	})
}

func TestItFollowsTheLoad(t *testing.T) {
	bubble(t, func(w *reconciletest.World, f *fake) {
		f.load(1000)
		time.Sleep(period)
		w.Settle()
		if f.replicas() != 4 {
			t.Fatalf("%d replicas", f.replicas())
		}
		want := "SuccessfulRescale"
		if events := w.Events.List(); !slices.ContainsFunc(events, func(e string) bool { return strings.Contains(e, want) }) {
			t.Errorf("no event %s: %v", want, events)
		}
		hpa, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("ns").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil || hpa.Status.LastScaleTime == nil || hpa.Status.DesiredReplicas != 4 || *hpa.Status.CurrentMetrics[0].Resource.Current.AverageUtilization != 100 {
			t.Errorf("%v, %+v", err, hpa.Status)
		}
		f.load(100)
		time.Sleep(4 * time.Minute)
		if synctest.Wait(); f.replicas() != 4 {
			t.Errorf("%d replicas before the stabilization ended", f.replicas())
		}
		time.Sleep(2 * time.Minute)
		if synctest.Wait(); f.replicas() != 1 {
			t.Errorf("%d replicas after it ended", f.replicas())
		}
	})
}

// A scale that others always write first is tried several times. The condition holds since the last time, not since the first.
func TestSinceWhenAScaleIsRefused(t *testing.T) {
	bubble(t, func(w *reconciletest.World, f *fake) {
		f.load(1000)
		f.mu.Lock()
		f.refusal = apierrors.NewConflict(schema.GroupResource{Resource: "deployments"}, "web", nil)
		f.mu.Unlock()
		time.Sleep(period + period/2)
		synctest.Wait()
		hpa, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("ns").Get(t.Context(), "a", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		at := slices.IndexFunc(hpa.Status.Conditions, func(c autoscalingv2.HorizontalPodAutoscalerCondition) bool {
			return c.Type == autoscalingv2.AbleToScale
		})
		if at < 0 {
			t.Fatalf("AbleToScale is not among %+v", hpa.Status.Conditions)
		}
		if c := hpa.Status.Conditions[at]; c.Reason != "FailedUpdateScale" || !c.LastTransitionTime.Time.Equal(f.refused) {
			t.Errorf("%s since %v, was refused last at %v", c.Reason, c.LastTransitionTime, f.refused)
		}
	})
}

func TestTwoOfTheSamePods(t *testing.T) {
	bubble(t, func(w *reconciletest.World, f *fake) {
		other := autoscaler(1, 10)
		other.Name = "b"
		reconciletest.Add(w, other)
		f.load(1000)
		time.Sleep(2 * period)
		w.Settle()
		for _, name := range []string{"a", "b"} {
			hpa, err := w.Client.AutoscalingV2().HorizontalPodAutoscalers("ns").Get(t.Context(), name, metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if got := conditionOf(plan{status: hpa.Status}, autoscalingv2.ScalingActive); got != "False AmbiguousSelector" {
				t.Errorf("%s: %s", name, got)
			}
		}
		if f.replicas() != 2 {
			t.Errorf("%d replicas", f.replicas())
		}
	})
}
