package watched

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

func podOf(uid types.UID, volumes ...corev1.VolumeSource) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", UID: uid}}
	for _, source := range volumes {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: source})
	}
	return pod
}

func configMap(name string) corev1.VolumeSource {
	return corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: name}}}
}

// server hands out watches that the test feeds.
type server struct {
	*fake.Clientset
	mu      sync.Mutex
	watches []*watch.FakeWatcher
	of      []string
}

func newServer() *server {
	s := &server{Clientset: fake.NewClientset()}
	s.PrependWatchReactor("*", func(a clienttesting.Action) (bool, watch.Interface, error) {
		w := watch.NewFake()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watches = append(s.watches, w)
		s.of = append(s.of, a.GetResource().Resource+" "+a.(clienttesting.WatchAction).GetWatchRestrictions().Fields.String())
		return true, w, nil
	})
	return s
}

func (s *server) change(i int) {
	s.watches[i].Modify(runtime.Object(&corev1.ConfigMap{}))
	synctest.Wait()
}

func TestPodsAreToldOfChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer()
		o := New(ctx, s)
		defer o.Wait()
		defer cancel()
		var a, b atomic.Int32
		pod := podOf("a", configMap("x"), configMap("x"))
		for range 2 {
			o.Follow(pod, func() { a.Add(1) })
		}
		synctest.Wait()
		o.Follow(podOf("b", configMap("x"), corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: "y"}}}, {}}}}), func() { b.Add(1) })
		synctest.Wait()
		if len(s.of) != 2 || s.of[0] != "configmaps metadata.name=x" || s.of[1] != "secrets metadata.name=y" {
			t.Fatalf("watches %q", s.of)
		}
		s.change(0)
		s.change(1)
		if a.Load() != 1 || b.Load() != 2 {
			t.Errorf("told %d and %d times", a.Load(), b.Load())
		}
		o.Forget("b")
		synctest.Wait()
		if !s.watches[1].IsStopped() || s.watches[0].IsStopped() {
			t.Error("a watch outlives its last pod, or not even the others")
		}
		s.watches[0].Stop() // the server closes it
		time.Sleep(retryMin)
		synctest.Wait()
		s.change(2)
		if a.Load() != 2 {
			t.Errorf("after a gap told %d times", a.Load())
		}
		o.Forget("a")
		o.Forget("a")
		synctest.Wait()
		if len(o.used)+len(o.byPod) > 0 {
			t.Errorf("left: %v %v", o.used, o.byPod)
		}
		cancel()
		o.Follow(pod, func() {})
	})
}

// TestAPodWithManyObjectsLeavesOthersTheirWatches: what it has too many of it is told of now and then.
func TestAPodWithManyObjectsLeavesOthersTheirWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		s := newServer()
		o := New(ctx, s)
		defer o.Wait()
		defer cancel()
		var greedy []corev1.VolumeSource
		for n := range watchesMax + 1 {
			greedy = append(greedy, configMap(fmt.Sprint(n)))
		}
		var told atomic.Int32
		o.Follow(podOf("greedy", greedy...), func() { told.Add(1) })
		synctest.Wait()
		if got := len(s.of); got != watchesMax/2 || told.Load() != watchesMax/2+1 {
			t.Errorf("%d watches, told %d times", got, told.Load())
		}
		other := podOf("other", configMap("x"))
		other.Namespace = "another"
		o.Follow(other, func() {})
		synctest.Wait()
		if got := s.of[len(s.of)-1]; got != "configmaps metadata.name=x" {
			t.Errorf("the last watch is of %q", got)
		}
		time.Sleep(retryMax)
		synctest.Wait()
		if told.Load() != 2*(watchesMax/2+1) {
			t.Errorf("later told %d times", told.Load())
		}
	})
}
