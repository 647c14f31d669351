package volumestats

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	stats "k8s.io/kubelet/pkg/apis/stats/v1alpha1"
)

// world is a node whose pods have volumes.
type world struct {
	pods []*corev1.Pod
	calls
	// hang are the volumes that are measured until the context ends, and fail those that cannot be.
	hang, fail map[string]bool
	mu         sync.Mutex
}

func (w *world) ofNode() []*corev1.Pod {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pods
}

// calls are those made so far: looked and measured count them, by claim and by volume; owners are of the claims that were made
// for a pod.
type calls struct {
	looked, measured map[string]int
	owners           map[string]string
}

func (w *world) now() calls {
	w.mu.Lock()
	defer w.mu.Unlock()
	return calls{maps.Clone(w.looked), maps.Clone(w.measured), maps.Clone(w.owners)}
}

// set changes what there is, and whether its only volume can be measured.
func (w *world) set(fails bool, pods ...*corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fail["pv-data"], w.pods = fails, pods
}

func (w *world) volume(_ context.Context, namespace, claim string, owner *corev1.Pod) (*corev1.PersistentVolume, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked[namespace+"/"+claim]++
	if owner != nil {
		w.owners[claim] = owner.Name
	}
	return &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pv-" + claim}}, nil
}

func (w *world) measure(ctx context.Context, _ types.UID, pv *corev1.PersistentVolume) (*stats.FsStats, error) {
	w.mu.Lock()
	w.measured[pv.Name]++
	used, hangs, fails := uint64(w.measured[pv.Name]), w.hang[pv.Name], w.fail[pv.Name]
	w.mu.Unlock()
	if hangs {
		<-ctx.Done()
	}
	if fails {
		return nil, errors.New("no such driver")
	}
	return &stats.FsStats{UsedBytes: &used}, ctx.Err()
}

func pod(uid types.UID, volumes ...corev1.Volume) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: string(uid), UID: uid}, Spec: corev1.PodSpec{Volumes: volumes}}
}

func claim(volume, name string) corev1.Volume {
	return corev1.Volume{Name: volume, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}
}

// in runs a test with a Keeper that is running.
func in(t *testing.T, every time.Duration, w *world, test func(k *Keeper)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w.calls = calls{map[string]int{}, map[string]int{}, map[string]string{}}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k := New(Config{Pods: w.ofNode, Volume: w.volume, Measure: w.measure, Every: every,
			Logger: slog.New(slog.DiscardHandler)})
		go k.Run(ctx)
		synctest.Wait()
		test(k)
	})
}

// used are the volumes of a pod, with what they use.
func used(list []stats.VolumeStats) map[string]uint64 {
	out := map[string]uint64{}
	for _, v := range list {
		out[v.Name+" "+v.PVCRef.Namespace+"/"+v.PVCRef.Name] = *v.UsedBytes
	}
	return out
}

func TestVolumesOfClaimsAreMeasuredEveryMinute(t *testing.T) {
	ephemeral := corev1.Volume{Name: "e", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}}}
	empty := corev1.Volume{Name: "x", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	w := &world{pods: []*corev1.Pod{pod("a", claim("v", "data"), ephemeral, empty), pod("b", claim("w", "data"))}}
	in(t, 0, w, func(k *Keeper) {
		time.Sleep(DefaultEvery + time.Second)
		if diff := cmp.Diff([]string{"e ns/a-e", "v ns/data"}, slices.Sorted(maps.Keys(used(k.Of("a"))))); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int{"pv-data": 4, "pv-a-e": 2}, w.now().measured); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]int{"ns/data": 2, "ns/a-e": 1}, w.now().looked); diff != "" {
			t.Error("claims are looked up once for each pod:", diff)
		}
		if diff := cmp.Diff(map[string]string{"a-e": "a"}, w.now().owners); diff != "" {
			t.Error(diff)
		}
		if n := len(k.All()); n != 2 {
			t.Errorf("%d claims, want each once", n)
		}
	})
}

func TestAVolumeThatHangsDelaysNothing(t *testing.T) {
	w := &world{pods: []*corev1.Pod{pod("a", claim("good", "good"), claim("bad", "bad"))}, hang: map[string]bool{"pv-bad": true}}
	in(t, time.Minute, w, func(k *Keeper) {
		time.Sleep(10*time.Minute + time.Second)
		if diff := cmp.Diff(map[string]int{"pv-good": 11, "pv-bad": 1}, w.now().measured); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(map[string]uint64{"good ns/good": 11}, used(k.Of("a"))); diff != "" {
			t.Error(diff)
		}
	})
}

func TestWhatCannotBeMeasuredIsNotTold(t *testing.T) {
	w := &world{pods: []*corev1.Pod{pod("a", claim("v", "data"))}, fail: map[string]bool{}}
	in(t, time.Minute, w, func(k *Keeper) {
		if len(k.Of("a")) != 1 {
			t.Fatal("it is not measured at once")
		}
		w.set(true, w.pods...)
		time.Sleep(time.Minute + time.Second)
		if got := k.Of("a"); len(got) != 0 {
			t.Errorf("told: %v", got)
		}
		w.set(false)
		time.Sleep(2 * time.Minute)
		got := k.Of("a")
		k.mu.Lock()
		defer k.mu.Unlock()
		if len(got) != 0 || len(k.volumes) != 0 {
			t.Errorf("a pod that is gone has %v", got)
		}
	})
}

func TestNothingIsMeasuredIfThatIsAskedFor(t *testing.T) {
	w := &world{pods: []*corev1.Pod{pod("a", claim("v", "data"))}}
	in(t, -1, w, func(k *Keeper) {
		time.Sleep(time.Hour)
		if looked := w.now().looked; len(looked) != 0 {
			t.Errorf("looked at %v", looked)
		}
	})
}
