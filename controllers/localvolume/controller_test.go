package localvolume

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-helpers/storage/volume"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
	"github.com/setpoint-io/setpoint/internal/localvolume"
)

// nodeDisks stands for the agents of all nodes.
type nodeDisks struct {
	mu      sync.Mutex
	has     map[string]int64 // node/handle -> bytes
	asked   []string
	broken  error
	without map[string]bool // data
}

var errAway = errors.New("the agent is away")

func (d *nodeDisks) call(text string) error {
	d.asked = append(d.asked, text)
	return d.broken
}

func (d *nodeDisks) Make(_ context.Context, node, handle string, want localvolume.Volume) (localvolume.Volume, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call("make " + node + "/" + handle); err != nil {
		return want, err
	}
	d.has[node+"/"+handle] = want.Bytes
	return want, nil
}

func (d *nodeDisks) Remove(_ context.Context, node, handle string, onlyEmpty bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.call(fmt.Sprintf("remove %s/%s %v", node, handle, onlyEmpty)); err != nil {
		return err
	}
	if !onlyEmpty || d.without[handle] {
		delete(d.has, node+"/"+handle)
	}
	return nil
}

func (d *nodeDisks) List(_ context.Context, node string) (handles []string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for key := range d.has {
		if handle, ok := strings.CutPrefix(key, node+"/"); ok {
			handles = append(handles, handle)
		}
	}
	slices.Sort(handles)
	return handles, d.broken
}

// set changes what the agents do.
func (d *nodeDisks) set(change func(*nodeDisks)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

// aWorld has the node n with 3Gi, and the class.
func aWorld(t *testing.T) (*reconciletest.World, *nodeDisks) {
	w, disks := reconciletest.New(t), &nodeDisks{has: map[string]int64{}, without: map[string]bool{}}
	reconciletest.Add(w, aNode("n", "3Gi"))
	reconciletest.Add(w, &storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: "n"},
		Spec: storagev1.CSINodeSpec{Drivers: []storagev1.CSINodeDriver{{Name: localvolume.Driver, NodeID: "n"}}}})
	w.Run(New(Config{Class: true, Agents: disks}))
	w.Settle()
	return w, disks
}

func TestTheClassAndTheRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := aWorld(t)
		made, err := w.Client.StorageV1().StorageClasses().Get(t.Context(), localvolume.Class, metav1.GetOptions{})
		if err != nil || made.Annotations[isDefaultClass] != "true" {
			t.Fatalf("%v, %v", made, err)
		}
		if got := roomOf(t, w); got != "3Gi" {
			t.Errorf("room %s", got)
		}
		w.Writes()
		time.Sleep(24 * time.Hour)
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("nothing has changed, but there is %v", writes)
		}
		w.Delete(made)
		w.Settle()
		if rooms, err := w.Client.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{}); err != nil || len(rooms.Items) > 0 {
			t.Errorf("%v, %v", rooms, err)
		}
	})
}

func roomOf(t *testing.T, w *reconciletest.World) string {
	t.Helper()
	rooms, err := w.Client.StorageV1().CSIStorageCapacities("").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(rooms.Items) != 1 {
		t.Fatalf("%v, %v", rooms, err)
	}
	return rooms.Items[0].Capacity.String()
}

func volumeOf(t *testing.T, w *reconciletest.World) *corev1.PersistentVolume {
	t.Helper()
	v, err := w.Client.CoreV1().PersistentVolumes().Get(t.Context(), "pvc-1-c", metav1.GetOptions{})
	if err != nil {
		return nil
	}
	return v
}

// TestAVolumeLives: an agent that is away at each step only delays it.
func TestAVolumeLives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disks := aWorld(t)
		later := func(what string, done func() bool) {
			t.Helper()
			disks.set(func(d *nodeDisks) { d.broken = nil })
			for range 20 {
				time.Sleep(time.Minute)
				if done() {
					disks.set(func(d *nodeDisks) { d.broken = errAway })
					return
				}
			}
			t.Fatalf("%s did not happen: %v", what, w.Events.List())
		}
		disks.set(func(d *nodeDisks) { d.broken = errAway })
		claim := reconciletest.Add(w, aClaim())
		w.Settle()
		if volumeOf(t, w) != nil {
			t.Fatal("a volume that the node did not make")
		}
		later("making", func() bool { return volumeOf(t, w) != nil })
		v := volumeOf(t, w)
		if got := roomOf(t, w); got != "2Gi" {
			t.Errorf("room %s", got)
		}
		reconciletest.Edit(w, claim, func(c *corev1.PersistentVolumeClaim) {
			c.Spec.VolumeName, c.Status.Phase = v.Name, corev1.ClaimBound
			c.Status.Capacity = c.Spec.Resources.Requests.DeepCopy()
			c.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("2Gi")
		})
		reconciletest.Edit(w, v, func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeBound })
		later("growing", func() bool {
			c, err := w.Client.CoreV1().PersistentVolumeClaims("ns").Get(t.Context(), "c", metav1.GetOptions{})
			has := c.Status.Capacity[corev1.ResourceStorage]
			return err == nil && has.String() == "2Gi"
		})
		if got := disks.has["n/pvc-1-c"]; got != 2<<30 {
			t.Errorf("%d bytes on the node", got)
		}
		w.Delete(claim)
		reconciletest.Edit(w, volumeOf(t, w), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		w.Settle()
		if volumeOf(t, w) == nil {
			t.Fatal("the volume went before its data")
		}
		later("deleting", func() bool { return volumeOf(t, w) == nil })
		if len(disks.has) > 0 {
			t.Errorf("left: %v", disks.has)
		}
		w.Settle()
		if got := roomOf(t, w); got != "3Gi" {
			t.Errorf("room %s", got)
		}
	})
}

func TestAClaimThatFindsNoRoomGoesElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disks := aWorld(t)
		for i := range 5 {
			reconciletest.Add(w, aClaim(func(c *corev1.PersistentVolumeClaim) { c.Name, c.UID = fmt.Sprint("c", i), "" }))
		}
		w.Settle()
		var lost, found int
		claims, err := w.Client.CoreV1().PersistentVolumeClaims("ns").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range claims.Items {
			if c.Annotations[volume.AnnSelectedNode] == "" {
				lost++
			}
		}
		found = len(disks.has)
		if lost != 2 || found != 3 {
			t.Errorf("%d claims lost their node, %d have a volume: %v", lost, found, w.Events.List())
		}
	})
}

// TestAnEmptyFolderOfACrashIsSwept, and nothing that has data, a volume or a claim.
func TestAnEmptyFolderOfACrashIsSwept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disks := aWorld(t)
		reconciletest.Add(w, aClaim())
		w.Settle()
		disks.set(func(d *nodeDisks) {
			for _, handle := range []string{"pvc-data", "pvc-empty", "pvc-1-c"} {
				d.has["n/"+handle] = 1
				d.without[handle] = handle != "pvc-data"
			}
		})
		time.Sleep(2 * sweepInterval)
		left, err := disks.List(t.Context(), "n")
		if diff := cmp.Diff([]string{"pvc-1-c", "pvc-data"}, left); diff != "" || err != nil {
			t.Error(diff, err)
		}
	})
}

// TestAClaimThatWasNeverBound takes its volume along, even if the volume is seen to be released before the claim is seen to be gone.
func TestAClaimThatWasNeverBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _ := aWorld(t)
		claim := reconciletest.Add(w, aClaim())
		w.Settle()
		reconciletest.Edit(w, volumeOf(t, w), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		w.Settle()
		if volumeOf(t, w) == nil {
			t.Fatal("its claim is there, and it is gone")
		}
		w.Delete(claim)
		w.Settle()
		if volumeOf(t, w) != nil {
			t.Errorf("it is still there: %v", w.Events.List())
		}
	})
}

func TestANodeThatLeftTookTheDataAlong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, disks := aWorld(t)
		claim := reconciletest.Add(w, aClaim())
		w.Settle()
		w.Delete(aNode("n", "3Gi"))
		w.Delete(claim)
		disks.set(func(d *nodeDisks) { d.broken = errAway })
		reconciletest.Edit(w, volumeOf(t, w), func(v *corev1.PersistentVolume) { v.Status.Phase = corev1.VolumeReleased })
		w.Settle()
		if volumeOf(t, w) != nil {
			t.Errorf("it is still there: %v", w.Events.List())
		}
	})
}
