package csi_test

import (
	"context"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/record"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes/csi"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
)

const (
	stages  = spec.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME
	expands = spec.NodeServiceCapability_RPC_EXPAND_VOLUME
)

// world is a node with one driver, d.
type world struct {
	t      *testing.T
	dirs   podconfig.Dirs
	client *fake.Clientset
	node   *corev1.Node
	driver *csitest.Driver
	events *record.FakeRecorder
	m      *csi.Manager
	end    func() // ends the agent
	// patience of the node with the driver.
	patience time.Duration
	// affected are the pods that a registration affected.
	affected []types.UID
}

func to[T any](v T) *T { return &v }

// csiDriver is the object of a driver that attaches nothing, unless change says otherwise.
func csiDriver(change func(*storagev1.CSIDriverSpec)) *storagev1.CSIDriver {
	object := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: "d"}, Spec: storagev1.CSIDriverSpec{AttachRequired: to(false)}}
	if change != nil {
		change(&object.Spec)
	}
	return object
}

func newWorld(t *testing.T, driver *csitest.Driver, objects ...runtime.Object) *world {
	t.Helper()
	w := &world{t: t, dirs: podconfig.Dirs{Root: t.TempDir()}, driver: driver, events: record.NewFakeRecorder(100), node: &corev1.Node{}}
	driver.Name = "d"
	w.client = fake.NewClientset(append(objects, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})...)
	w.start()
	return w
}

// start is also the start of another agent, after end.
func (w *world) start() {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	logger := slog.New(slog.DiscardHandler)
	m, err := csi.New(ctx, csi.Config{
		NodeName: "n", Client: w.client, Dirs: w.dirs, Nodes: csinode.New(w.client, "n", logger), BuiltIn: []string{"ours"},
		Node: func() *corev1.Node { return w.node }, Events: w.events, Logger: logger, Patience: w.patience,
		Affected:  func(pod types.UID) { w.affected = append(w.affected, pod) },
		FileLabel: func(o *runtimeapi.SELinuxOption) (string, error) { return o.GetLevel(), nil },
	})
	if err != nil {
		w.t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.Run(ctx)
	}()
	w.m, w.end = m, func() { cancel(); <-done }
	w.t.Cleanup(w.end)
}

// register brings the driver to the node.
func (w *world) register() {
	w.t.Helper()
	if err := w.m.Register(w.t.Context(), "d", w.driver.Serve(w.t), []string{"1.0.0"}); err != nil {
		w.t.Fatal(err)
	}
}

// eventually waits for a condition.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(20 * time.Second)
	for !condition() {
		select {
		case <-limit:
			w.t.Fatalf("not in time: %s", what)
		case <-tick.C:
		}
	}
}

// files are those below a folder of the data directory.
func (w *world) files(dir string) (found []string) {
	w.t.Helper()
	root := filepath.Join(w.dirs.Root, dir)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			name, _ := filepath.Rel(root, path)
			found = append(found, name)
		}
		if os.IsNotExist(err) {
			return nil
		}
		return err
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func pod(uid types.UID) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "pod-" + string(uid), UID: uid}, Spec: corev1.PodSpec{ServiceAccountName: "sa"}}
}

func pv(change func(*corev1.PersistentVolume)) *corev1.PersistentVolume {
	v := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv"},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:    corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, MountOptions: []string{"noatime"},
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
				Driver: "d", VolumeHandle: "vol", FSType: "ext4", VolumeAttributes: map[string]string{"a": "b"}}},
		},
	}
	if change != nil {
		change(v)
	}
	return v
}

func (w *world) mount(uid types.UID, v *corev1.PersistentVolume) (csi.Mounted, error) {
	return w.m.Mount(w.t.Context(), csi.Volume{Pod: pod(uid), Name: "data", PV: v, Token: token})
}

func token(_ context.Context, audience string, seconds int64) (string, time.Time, error) {
	return "token-for-" + audience, time.Unix(seconds, 0), nil
}

func (w *world) mustMount(uid types.UID, v *corev1.PersistentVolume) csi.Mounted {
	w.t.Helper()
	mounted, err := w.mount(uid, v)
	if err != nil {
		w.t.Fatal(err)
	}
	return mounted
}

func (w *world) unmount(uid types.UID) error { return w.m.Unmount(w.t.Context(), pod(uid)) }
