package endpoints

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
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func service(name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", Labels: map[string]string{"of": name}},
		Spec: corev1.ServiceSpec{Selector: selector, ClusterIP: "10.96.0.7", IPFamilies: []corev1.IPFamily{corev1.IPv4Protocol},
			Ports: []corev1.ServicePort{
				{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP},
				{Name: "named", Port: 81, TargetPort: intstr.FromString("admin"), Protocol: corev1.ProtocolTCP},
			}},
	}
}

func pod(i int, ready bool) *corev1.Pod {
	ip := fmt.Sprintf("10.42.%d.%d", i/250, i%250)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("p%d", i), Namespace: "ns", Labels: map[string]string{"app": "web"}},
		Spec:       corev1.PodSpec{NodeName: "n1"},
		Status:     corev1.PodStatus{PodIP: ip, PodIPs: []corev1.PodIP{{IP: ip}}},
	}
	if i%2 == 0 {
		p.Spec.Containers = []corev1.Container{{Ports: []corev1.ContainerPort{{Name: "admin", ContainerPort: 9, Protocol: corev1.ProtocolTCP}}}}
	}
	reconciletest.SetReady(p, ready)
	return p
}

// flat lists Endpoints as "service ip:port ready", sorted.
func flat(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	list, err := w.Client.CoreV1().Endpoints("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		out = append(out, e.Name)
		for _, s := range e.Subsets {
			for _, port := range s.Ports {
				for _, a := range s.Addresses {
					out = append(out, fmt.Sprintf("%s %s:%d", e.Name, a.IP, port.Port))
				}
				for _, a := range s.NotReadyAddresses {
					out = append(out, fmt.Sprintf("%s %s:%d not ready", e.Name, a.IP, port.Port))
				}
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// model is what flat must say, from the Services and pods alone.
func model(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	services, err := w.Client.CoreV1().Services("ns").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range services.Items {
		if s.Spec.Selector == nil {
			continue
		}
		out = append(out, s.Name)
		for _, p := range w.Pods("ns") {
			publish := s.Spec.PublishNotReadyAddresses
			if p.Labels["app"] != s.Spec.Selector["app"] || p.DeletionTimestamp != nil && !publish {
				continue
			}
			state := " not ready"
			if publish || p.Status.Conditions[0].Status == corev1.ConditionTrue {
				state = ""
			}
			out = append(out, fmt.Sprintf("%s %s:8080%s", s.Name, p.Status.PodIP, state))
			if len(p.Spec.Containers) > 0 {
				out = append(out, fmt.Sprintf("%s %s:9%s", s.Name, p.Status.PodIP, state))
			}
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// step changes the world in one way that users and nodes do.
func step(t *testing.T, w *reconciletest.World, rng *rand.Rand, i int) {
	t.Helper()
	ctx, pods := t.Context(), w.Pods("ns")
	client := w.Client.CoreV1()
	name := []string{"web", "other"}[rng.IntN(2)]
	switch kind := rng.IntN(8); {
	case kind == 0:
		_ = client.Services("ns").Delete(ctx, name, metav1.DeleteOptions{})
	case kind == 1:
		if _, err := client.Services("ns").Get(ctx, name, metav1.GetOptions{}); apierrors.IsNotFound(err) {
			s := service(name, map[string]string{"app": name})
			s.Spec.PublishNotReadyAddresses = rng.IntN(2) == 0
			reconciletest.Add(w, s)
		}
	case kind == 2: // somebody edits
		if e, err := client.Endpoints("ns").Get(ctx, name, metav1.GetOptions{}); err == nil {
			e.Subsets, e.Labels = nil, nil
			_, _ = client.Endpoints("ns").Update(ctx, e, metav1.UpdateOptions{})
		}
	case kind == 3:
		_ = client.Endpoints("ns").Delete(ctx, name, metav1.DeleteOptions{})
	case kind == 4 || len(pods) == 0:
		reconciletest.Add(w, pod(i, rng.IntN(2) == 0))
	case kind == 5:
		_ = client.Pods("ns").Delete(ctx, pods[rng.IntN(len(pods))].Name, metav1.DeleteOptions{})
	case kind == 6:
		p := pods[rng.IntN(len(pods))]
		p.Labels = map[string]string{"app": name}
		w.Put(&p)
	default:
		p := pods[rng.IntN(len(pods))]
		reconciletest.SetReady(&p, rng.IntN(2) == 0)
		w.Put(&p)
	}
}

// runWorld runs a generated world; the write number at ends the term, before or after it took effect.
func runWorld(t *testing.T, seed uint64, at int, applied bool) (writes int) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		rng := rand.New(rand.NewPCG(seed, 1))
		var dead, stepping atomic.Bool
		ours := map[string]bool{"create": true, "update": true, "delete": true}
		var stop context.CancelFunc
		done := make(chan error, 1)
		begin := func() {
			var ctx context.Context
			ctx, stop = context.WithCancel(w.Context())
			go func() { done <- New().Start(ctx, w.Env()) }()
		}
		w.Client.PrependReactor("*", "endpoints", func(a clienttesting.Action) (bool, runtime.Object, error) {
			if stepping.Load() || !ours[a.GetVerb()] {
				return false, nil, nil
			}
			if dead.Load() {
				return true, nil, apierrors.NewInternalError(errors.New("the term is over"))
			}
			if writes++; writes != at {
				return false, nil, nil
			}
			if applied {
				for _, r := range w.Client.ReactionChain[1:] {
					if handled, _, _ := r.React(a); handled && r.Handles(a) {
						break
					}
				}
			}
			dead.Store(true)
			stop()
			return true, nil, apierrors.NewTimeoutError("the answer is lost", 0)
		})
		w.Warm(New())
		w.Start()
		begin()
		for i := range 25 {
			stepping.Store(true)
			step(t, w, rng, i+1)
			stepping.Store(false)
			if dead.Load() || rng.IntN(3) == 0 {
				time.Sleep(time.Second)
				w.Settle()
			}
			if dead.Load() {
				<-done
				dead.Store(false)
				begin()
			}
		}
		time.Sleep(10 * time.Minute)
		w.Settle()
		if dead.Load() {
			<-done
			dead.Store(false)
			begin()
			w.Settle()
		}
		if got, want := flat(t, w), model(t, w); got != want {
			t.Errorf("seed %d, crash at write %d (applied %v):\n got %s\nwant %s", seed, at, applied, got, want)
		}
		w.Writes()
		stop()
		<-done
		begin()
		time.Sleep(time.Minute)
		w.Settle()
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

func TestLeavesOthersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		reconciletest.Add(w, service("manual", nil))
		made := func(ns, name string, annotations map[string]string) {
			reconciletest.Add(w, &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name, Annotations: annotations}})
		}
		made("ns", "manual", nil)
		made("ns", "election", map[string]string{"control-plane.alpha.kubernetes.io/leader": "{}"})
		made("ns", "left-over", nil)
		made("default", "kubernetes", nil)
		w.Run(New())
		w.Settle()
		made("ns", "later", nil)
		w.Settle()
		if got := strings.Join(w.Writes(), " "); got != "delete endpoints ns/left-over" {
			t.Errorf("got %q", got)
		}
	})
}
