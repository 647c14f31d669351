package endpointslicemirroring

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func service(selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns"}, Spec: corev1.ServiceSpec{Selector: selector}}
}

func endpoints(subsets ...corev1.EndpointSubset) *corev1.Endpoints {
	return &corev1.Endpoints{
		ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "ns", Labels: map[string]string{"a": "b"}, Annotations: map[string]string{
			"kept": "yes", corev1.LastAppliedConfigAnnotation: "{}", corev1.EndpointsLastChangeTriggerTime: "then",
		}},
		Subsets: subsets,
	}
}

func subset(port int32, ips ...string) corev1.EndpointSubset {
	s := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Port: port, Protocol: corev1.ProtocolTCP}}}
	for _, ip := range ips {
		s.Addresses = append(s.Addresses, corev1.EndpointAddress{IP: ip})
	}
	return s
}

// flat lists our slices as "family ip:port", sorted.
func flat(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	list, err := w.Client.DiscoveryV1().EndpointSlices("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			for _, port := range s.Ports {
				out = append(out, fmt.Sprintf("%s %s:%d %s", s.AddressType, e.Addresses[0], *port.Port, s.Labels["a"]))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// model is what flat must say, from the Service and the Endpoints alone.
func model(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	s, err := w.Client.CoreV1().Services("ns").Get(t.Context(), "web", metav1.GetOptions{})
	e, err2 := w.Client.CoreV1().Endpoints("ns").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil || err2 != nil || s.Spec.Selector != nil || e.Labels["endpointslice.kubernetes.io/skip-mirror"] == "true" {
		return ""
	}
	var out []string
	for _, subset := range e.Subsets {
		for _, a := range subset.Addresses {
			family := "IPv4"
			if strings.Contains(a.IP, ":") {
				family = "IPv6"
			}
			out = append(out, fmt.Sprintf("%s %s:%d %s", family, a.IP, subset.Ports[0].Port, e.Labels["a"]))
		}
	}
	slices.Sort(out)
	return strings.Join(slices.Compact(out), ", ")
}

func generated(rng *rand.Rand) []corev1.EndpointSubset {
	var all []corev1.EndpointSubset
	for port := range int32(rng.IntN(4)) {
		var ips []string
		for i := range rng.IntN(5) {
			ips = append(ips, fmt.Sprintf([]string{"10.0.0.%d", "fd00::%d"}[rng.IntN(2)], i+1))
		}
		all = append(all, subset(port+1, ips...))
	}
	return all
}

// step changes the world in one way that users do.
func step(t *testing.T, w *reconciletest.World, rng *rand.Rand) {
	t.Helper()
	ctx, core := t.Context(), w.Client.CoreV1()
	s, _ := core.Services("ns").Get(ctx, "web", metav1.GetOptions{})
	e, err := core.Endpoints("ns").Get(ctx, "web", metav1.GetOptions{})
	switch kind := rng.IntN(9); {
	case kind == 0:
		_ = core.Services("ns").Delete(ctx, "web", metav1.DeleteOptions{})
	case kind == 1:
		_ = core.Endpoints("ns").Delete(ctx, "web", metav1.DeleteOptions{})
	case s == nil || s.Name == "":
		reconciletest.Add(w, service(nil))
	case err != nil:
		reconciletest.Add(w, endpoints(generated(rng)...))
	case kind == 2:
		s.Spec.Selector = []map[string]string{nil, {"app": "web"}}[rng.IntN(2)]
		_, _ = core.Services("ns").Update(ctx, s, metav1.UpdateOptions{})
	case kind == 3:
		e.Labels = map[string]string{"a": fmt.Sprint(rng.IntN(3)), discoveryv1.LabelSkipMirror: []string{"true", "false"}[rng.IntN(2)]}
		_, _ = core.Endpoints("ns").Update(ctx, e, metav1.UpdateOptions{})
	case kind == 4: // somebody edits a slice, or deletes it
		list, _ := w.Client.DiscoveryV1().EndpointSlices("ns").List(ctx, metav1.ListOptions{})
		for _, slice := range list.Items {
			slice.Endpoints, slice.Labels["a"] = nil, "edited"
			_, _ = w.Client.DiscoveryV1().EndpointSlices("ns").Update(ctx, &slice, metav1.UpdateOptions{})
			if rng.IntN(2) == 0 {
				_ = w.Client.DiscoveryV1().EndpointSlices("ns").Delete(ctx, slice.Name, metav1.DeleteOptions{})
			}
		}
	default:
		e.Subsets = generated(rng)
		_, _ = core.Endpoints("ns").Update(ctx, e, metav1.UpdateOptions{})
	}
}

// runWorld runs a generated world; the write number at ends the term, before or after it took effect.
func runWorld(t *testing.T, seed uint64, at int, applied bool) (writes int) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		var dead, stepping atomic.Bool
		var stop context.CancelFunc
		done := make(chan error, 1)
		begin := func() {
			var ctx context.Context
			ctx, stop = context.WithCancel(w.Context())
			dead.Store(false)
			go func() { done <- New().Start(ctx, w.Env()) }()
		}
		w.Client.PrependReactor("*", "endpointslices", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if verb := a.GetVerb(); stepping.Load() || verb == "list" || verb == "watch" || verb == "get" {
				return false, nil, nil
			}
			if dead.Load() {
				return true, nil, apierrors.NewInternalError(errors.New("the term is over"))
			}
			if writes++; writes != at {
				return false, nil, nil
			}
			for _, r := range w.Client.ReactionChain[1:] {
				if !applied || !r.Handles(a) {
					continue
				}
				if handled, _, _ := r.React(a); handled {
					break
				}
			}
			dead.Store(true)
			stop()
			return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
		})
		w.Warm(New())
		w.Start()
		begin()
		again := func() {
			<-done
			begin()
			w.Settle()
		}
		for range 30 {
			stepping.Store(true)
			step(t, w, rng)
			stepping.Store(false)
			if dead.Load() || rng.IntN(3) == 0 {
				time.Sleep(time.Second)
				w.Settle()
			}
			if dead.Load() {
				again()
			}
		}
		time.Sleep(10 * time.Minute)
		w.Settle()
		if dead.Load() {
			again()
		}
		if got, want := flat(t, w), model(t, w); got != want {
			t.Errorf("seed %d, crash at write %d (applied %v):\n got %s\nwant %s", seed, at, applied, got, want)
		}
		w.Writes()
		stop()
		again()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("seed %d: a new term wrote to an unchanged world: %v", seed, writes)
		}
		stop()
		<-done
	})
	return writes
}

// TestGeneratedWorldsEndAsTheModel: whatever happens, and wherever a term ends.
func TestGeneratedWorldsEndAsTheModel(t *testing.T) {
	for seed := range uint64(40) {
		runWorld(t, seed, 0, false)
	}
	for at := 1; at <= runWorld(t, 7, 0, false) && !t.Failed(); at++ {
		runWorld(t, 7, at, false)
		runWorld(t, 7, at, true)
	}
}

func TestASliceIsAsUpstreamMakesIt(t *testing.T) {
	e := endpoints(subset(80, "10.0.0.1", "fd00::1", "no address"))
	e.UID = "uid"
	parts, out := partsOf(e)
	todo := plan(e, nil, parts)
	if len(todo.create) != 2 || out.invalid != 1 {
		t.Fatalf("%d slices, %+v", len(todo.create), out)
	}
	s := todo.create[0]
	if s.GenerateName != "web-" || len(s.Annotations) != 1 || s.Annotations["kept"] != "yes" || len(s.Labels) != 3 ||
		s.OwnerReferences[0].Kind != "Endpoints" || s.OwnerReferences[0].UID != "uid" {
		t.Errorf("%+v", s.ObjectMeta)
	}
	old := s.DeepCopy()
	old.Name, old.Ports[0].Port = "web-1", new(int32(81))
	if todo := plan(e, []*discoveryv1.EndpointSlice{old}, parts); len(todo.create) != 1 || len(todo.remove) != 0 || todo.update[0].Name != "web-1" {
		t.Errorf("a superfluous slice is not used again: %+v", todo)
	}
}

func TestAThousandAddressesOfASubset(t *testing.T) {
	var ips []string
	for i := range 1003 {
		ips = append(ips, fmt.Sprintf("10.0.%d.%d", i/250, i%250))
	}
	parts, out := partsOf(endpoints(subset(80, ips...)))
	if len(parts) != 1 || len(parts[0].endpoints) != 1000 || out.tooMany != 3 {
		t.Errorf("%d parts, %+v", len(parts), out)
	}
}
