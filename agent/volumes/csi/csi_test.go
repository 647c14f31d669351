package csi_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
	"github.com/setpoint-io/setpoint/agent/volumes/csi/csitest"
)

func capable(of ...spec.NodeServiceCapability_RPC_Type) *csitest.Driver {
	return &csitest.Driver{Capabilities: of}
}

func (w *world) calls(want ...string) {
	w.t.Helper()
	if diff := cmp.Diff(want, w.driver.Calls()); diff != "" {
		w.t.Error(diff)
	}
}

// TestTheLifeOfAVolume: two pods share it. It is staged once, and unstaged after the last has gone.
func TestTheLifeOfAVolume(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(nil))
	w.register()
	at := w.mustMount("one", pv(nil))
	if want := filepath.Join(w.dirs.Pods(), "one/volumes/kubernetes.io~csi/pv/mount"); at.Path != want || at.GiveGroup {
		t.Errorf("%+v", at)
	}
	w.mustMount("two", pv(nil))
	w.mustMount("two", pv(nil)) // nothing is due
	w.calls("Stage vol", "Publish vol", "Publish vol")
	request := w.driver.Last("Publish").(*spec.NodePublishVolumeRequest)
	if !strings.HasPrefix(request.StagingTargetPath, filepath.Join(w.dirs.Plugins(), "kubernetes.io/csi/d")) ||
		!strings.HasSuffix(request.StagingTargetPath, "/globalmount") {
		t.Error(request.StagingTargetPath)
	}
	if diff := cmp.Diff([]string{"noatime"}, request.VolumeCapability.GetMount().MountFlags); diff != "" || request.VolumeContext["a"] != "b" {
		t.Error(request)
	}
	if !w.m.Follows("one") || w.m.Follows("three") {
		t.Error("who has volumes to look at")
	}
	if err := w.unmount("one"); err != nil {
		t.Fatal(err)
	}
	if err := w.unmount("two"); err != nil {
		t.Fatal(err)
	}
	w.eventually("the volume is unstaged", func() bool { return w.driver.Saw("Unstage vol") && len(w.files("plugins")) == 0 })
	w.calls("Unpublish vol", "Unpublish vol", "Unstage vol")
	if left := w.files("pods"); len(left) > 0 {
		t.Error(left)
	}
}

// TestAnAgentThatWasKilled: the next one finds on disk what is to be taken away.
func TestAnAgentThatWasKilled(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(func(s *storagev1.CSIDriverSpec) {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{"Persistent", "Ephemeral"}
	}))
	w.register()
	w.mustMount("one", pv(nil))
	block := pv(func(v *corev1.PersistentVolume) {
		v.Name, v.Spec.CSI.VolumeHandle, v.Spec.VolumeMode = "raw", "disk", to(corev1.PersistentVolumeBlock)
	})
	w.mustMount("one", block)
	if _, err := w.m.Mount(t.Context(), csi.Volume{Pod: pod("one"), Name: "own", Inline: &corev1.CSIVolumeSource{Driver: "d"}}); err != nil {
		t.Fatal(err)
	}
	w.driver.Calls()
	w.end()
	w.start()
	if err := w.unmount("one"); err == nil || !strings.Contains(err.Error(), "driver name d not found in the list of registered CSI drivers") {
		t.Errorf("without the driver: %v", err)
	}
	w.register()
	if err := w.unmount("one"); err != nil {
		t.Fatal(err)
	}
	w.eventually("all is unstaged", func() bool { return len(w.files("plugins")) == 0 })
	calls := w.driver.Calls()
	slices.Sort(calls)
	for i := range calls {
		calls[i], _, _ = strings.Cut(calls[i], " csi-")
	}
	if diff := cmp.Diff([]string{"Unpublish", "Unpublish disk", "Unpublish vol", "Unstage disk", "Unstage vol"}, calls); diff != "" {
		t.Error(diff)
	}
}

// TestADriverThatComes: the pods that waited for it are told, and those that have its volumes from an earlier agent.
func TestADriverThatComes(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(nil))
	if _, err := w.mount("one", pv(nil)); err == nil || !strings.Contains(err.Error(), "driver name d not found") {
		t.Errorf("without the driver: %v", err)
	}
	w.register()
	w.mustMount("one", pv(nil))
	w.end()
	w.start()
	w.register()
	if diff := cmp.Diff([]types.UID{"one", "one"}, w.affected); diff != "" {
		t.Error(diff)
	}
}

// TestWhatNobodyUses: the pod was taken away, and the agent killed before the volume was unstaged.
func TestWhatNobodyUses(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(nil))
	w.register()
	w.mustMount("one", pv(nil))
	w.driver.Fail("Unstage", status.Error(codes.Internal, "busy"))
	if err := w.unmount("one"); err != nil {
		t.Fatal(err)
	}
	w.eventually("it was tried", func() bool { return w.driver.Saw("Unstage vol") })
	w.end()
	w.driver.Fail("Unstage", nil)
	w.driver.Calls()
	w.start()
	w.register()
	w.eventually("it is unstaged", func() bool { return len(w.files("plugins")) == 0 })
	w.calls("Unstage vol")
}

func TestWhatADriverIsTold(t *testing.T) {
	secret := func(name string) *corev1.Secret {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "s", Name: name}, Data: map[string][]byte{"key": []byte(name)}}
	}
	w := newWorld(t, capable(stages, spec.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER), csiDriver(func(s *storagev1.CSIDriverSpec) {
		s.PodInfoOnMount = to(true)
		s.TokenRequests = []storagev1.TokenRequest{{Audience: "cloud", ExpirationSeconds: to(int64(600))}}
	}), secret("stage"), secret("publish"))
	w.register()
	w.mustMount("one", pv(func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
		v.Spec.CSI.NodeStageSecretRef = &corev1.SecretReference{Namespace: "s", Name: "stage"}
		v.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "s", Name: "publish"}
	}))
	stage := w.driver.Last("Stage").(*spec.NodeStageVolumeRequest)
	if stage.Secrets["key"] != "stage" || len(stage.VolumeContext) != 1 {
		t.Error(stage)
	}
	publish := w.driver.Last("Publish").(*spec.NodePublishVolumeRequest)
	want := map[string]string{
		"a": "b", "csi.storage.k8s.io/pod.name": "pod-one", "csi.storage.k8s.io/pod.namespace": "x", "csi.storage.k8s.io/pod.uid": "one",
		"csi.storage.k8s.io/serviceAccount.name": "sa", "csi.storage.k8s.io/ephemeral": "false",
		"csi.storage.k8s.io/serviceAccount.tokens": `{"cloud":{"token":"token-for-cloud","expirationTimestamp":"1970-01-01T00:10:00Z"}}`,
	}
	if diff := cmp.Diff(want, publish.VolumeContext); diff != "" || publish.Secrets["key"] != "publish" {
		t.Error(diff, publish.Secrets)
	}
	if mode := publish.VolumeCapability.AccessMode.Mode; mode != spec.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		t.Error(mode)
	}
}

func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		driver *storagev1.CSIDriver
		volume func(*corev1.PersistentVolume)
		inline bool
		fail   string
		code   codes.Code
		want   string
		left   bool // there is something to take away
	}{
		"stage refuses": {driver: csiDriver(nil), fail: "Stage", code: codes.InvalidArgument,
			want: `MountVolume.MountDevice failed for volume "pv" : rpc error: code = InvalidArgument desc = sorry`},
		"stage may be under way": {driver: csiDriver(nil), fail: "Stage", code: codes.Aborted, want: "code = Aborted", left: true},
		"publish refuses": {driver: csiDriver(nil), fail: "Publish", code: codes.Internal,
			want: `MountVolume.SetUp failed for volume "pv" : rpc error: code = Internal desc = sorry`},
		"block": {driver: csiDriver(nil), fail: "Publish", code: codes.Internal, want: `MapVolume.MapPodDevice failed for volume "pv"`,
			volume: func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = to(corev1.PersistentVolumeBlock) }},
		"secret": {driver: csiDriver(nil), want: `fetching NodePublishSecretRef s/gone failed: secrets "gone" not found`,
			volume: func(v *corev1.PersistentVolume) {
				v.Spec.CSI.NodePublishSecretRef = &corev1.SecretReference{Namespace: "s", Name: "gone"}
			}},
		"no inline volumes": {driver: csiDriver(nil), inline: true,
			want: `volume mode "Ephemeral" not supported by driver d (only supports [])`},
		"only inline volumes": {driver: csiDriver(func(s *storagev1.CSIDriverSpec) {
			s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{"Ephemeral"}
		}),
			want: `volume mode "Persistent" not supported by driver d (only supports ["Ephemeral"])`},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capable(stages), c.driver)
			w.register()
			if c.fail != "" {
				w.driver.Fail(c.fail, status.Error(c.code, "sorry"))
			}
			v := csi.Volume{Pod: pod("one"), Name: "own", PV: pv(c.volume)}
			if c.inline {
				v.PV, v.Inline = nil, &corev1.CSIVolumeSource{Driver: "d"}
			}
			_, err := w.m.Mount(t.Context(), v)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v", err)
			}
			w.driver.Calls()
			w.driver.Fail(c.fail, nil)
			if err := w.unmount("one"); err != nil {
				t.Error(err)
			}
			w.eventually("nothing is left", func() bool { return len(w.files("plugins"))+len(w.files("pods")) == 0 })
			if c.left != (len(w.driver.Calls()) > 0) && c.fail == "Stage" {
				t.Error("whether the driver was asked to undo it")
			}
		})
	}
}

// TestWhatIsStillMountedStays: a driver that forgot to unmount must not cost the content.
func TestWhatIsStillMountedStays(t *testing.T) {
	w := newWorld(t, capable(), csiDriver(nil))
	w.register()
	at := w.mustMount("one", pv(nil))
	if err := os.MkdirAll(filepath.Join(at.Path, "content"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := w.unmount("one"); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(at.Path, "content")); err != nil {
		t.Error(err)
	}
}

func TestExpand(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "c"},
		Status: corev1.PersistentVolumeClaimStatus{
			Capacity:   corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
			Conditions: []corev1.PersistentVolumeClaimCondition{{Type: corev1.PersistentVolumeClaimFileSystemResizePending, Status: corev1.ConditionTrue}},
		},
	}
	w := newWorld(t, capable(stages, expands), csiDriver(nil), claim)
	w.register()
	bound := func(size string) *corev1.PersistentVolume {
		return pv(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "x", Name: "c"}
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(size)
		})
	}
	w.mustMount("one", bound("1Gi"))
	w.calls("Stage vol", "Publish vol")
	w.driver.Fail("Expand", status.Error(codes.Internal, "no"))
	w.mustMount("one", bound("2Gi"))
	if e := <-w.events.Events; !strings.Contains(e, "Warning VolumeResizeFailed NodeExpandVolume.NodeExpandVolume failed") {
		t.Error(e)
	}
	w.driver.Fail("Expand", nil)
	w.mustMount("one", bound("2Gi"))
	w.mustMount("one", bound("2Gi"))
	w.calls("Expand vol", "Expand vol")
	got, err := w.client.CoreV1().PersistentVolumeClaims("x").Get(t.Context(), "c", metav1.GetOptions{})
	if size := got.Status.Capacity.Storage().String(); err != nil || size != "2Gi" || len(got.Status.Conditions) > 0 {
		t.Errorf("%v, %v", got.Status, err)
	}
	if e := <-w.events.Events; !strings.Contains(e, `Normal FileSystemResizeSuccessful MountVolume.NodeExpandVolume succeeded for volume "pv"`) {
		t.Error(e)
	}
}

// TestReadOnlyIsNotExpanded: the pod and the claim say once for each size that a volume keeps its size, because the pod only reads it.
func TestReadOnlyIsNotExpanded(t *testing.T) {
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: "x", Name: "c"},
		Status:     corev1.PersistentVolumeClaimStatus{Capacity: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}
	w := newWorld(t, capable(expands), csiDriver(nil), claim)
	w.register()
	for _, size := range []string{"2Gi", "2Gi", "3Gi", "3Gi"} {
		grown := pv(func(v *corev1.PersistentVolume) {
			v.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "x", Name: "c"}
			v.Spec.Capacity[corev1.ResourceStorage] = resource.MustParse(size)
		})
		if _, err := w.m.Mount(t.Context(), csi.Volume{Pod: pod("one"), Name: "data", PV: grown, ReadOnly: true, Token: token}); err != nil {
			t.Fatal(err)
		}
	}
	w.calls("Publish vol")
	if n := len(w.events.Events); n != 4 { // of the pod and of the claim, once for each size
		t.Errorf("%d events", n)
	}
	for range len(w.events.Events) {
		if e := <-w.events.Events; e != `Warning FileSystemResizeFailed MountVolume.NodeExpandVolume failed for volume "pv" requested read-only file system` {
			t.Error(e)
		}
	}
}

func TestRepublish(t *testing.T) {
	w := newWorld(t, capable(), csiDriver(func(s *storagev1.CSIDriverSpec) { s.RequiresRepublish = to(true) }))
	w.register()
	w.mustMount("one", pv(nil))
	w.mustMount("one", pv(nil))
	w.driver.Fail("Publish", status.Error(codes.Internal, "no"))
	at, err := w.mount("one", pv(nil))
	if err == nil {
		t.Error(at)
	}
	if left := w.files("pods"); !slices.Contains(left, "one/volumes/kubernetes.io~csi/pv/vol_data.json") {
		t.Errorf("the pod still has the volume, but of its record: %v", left)
	}
	w.calls("Publish vol", "Publish vol", "Publish vol")
}

// TestGroups: who gives the files to the pod's fsGroup.
func TestGroups(t *testing.T) {
	group := func(p storagev1.FSGroupPolicy) *storagev1.CSIDriver {
		return csiDriver(func(s *storagev1.CSIDriverSpec) { s.FSGroupPolicy = &p })
	}
	many := func(v *corev1.PersistentVolume) {
		v.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	}
	bare := func(v *corev1.PersistentVolume) { v.Spec.CSI.FSType = "" }
	for name, c := range map[string]struct {
		object *storagev1.CSIDriver
		can    []spec.NodeServiceCapability_RPC_Type
		volume func(*corev1.PersistentVolume)
		gives  bool
	}{
		"by default":                {csiDriver(nil), nil, nil, true},
		"by default, many writers":  {csiDriver(nil), nil, many, false},
		"by default, no fsType":     {csiDriver(nil), nil, bare, false},
		"File":                      {group(storagev1.FileFSGroupPolicy), nil, many, true},
		"None":                      {group(storagev1.NoneFSGroupPolicy), nil, nil, false},
		"the driver does it itself": {csiDriver(nil), []spec.NodeServiceCapability_RPC_Type{spec.NodeServiceCapability_RPC_VOLUME_MOUNT_GROUP}, nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capable(c.can...), c.object)
			w.register()
			p := pod("one")
			p.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: to(int64(7))}
			at, err := w.m.Mount(t.Context(), csi.Volume{Pod: p, Name: "data", PV: pv(c.volume)})
			if err != nil || at.GiveGroup != c.gives {
				t.Errorf("%v, %v", at, err)
			}
			told := w.driver.Last("Publish").(*spec.NodePublishVolumeRequest).VolumeCapability.GetMount().VolumeMountGroup
			if (told == "7") != (len(c.can) > 0) {
				t.Errorf("the driver was told %q", told)
			}
		})
	}
}

// TestADriverThatHangs keeps no other pod waiting, and a pod that ends meanwhile ends.
func TestADriverThatHangs(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(nil))
	w.register()
	w.driver.Hang("Stage", true)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() {
		_, err := w.m.Mount(ctx, csi.Volume{Pod: pod("one"), Name: "data", PV: pv(nil)})
		done <- err
	}()
	w.eventually("the driver was asked", func() bool { return w.driver.Saw("Stage vol") })
	w.driver.Hang("Stage", false)
	w.mustMount("two", pv(func(v *corev1.PersistentVolume) { v.Name, v.Spec.CSI.VolumeHandle = "other", "other" }))
	cancel()
	if err := <-done; status.Code(errors.Unwrap(err)) != codes.Canceled {
		t.Error(err)
	}
	if err := w.unmount("one"); err != nil {
		t.Error(err)
	}
	w.eventually("what may be under way is taken back", func() bool { return w.driver.Saw("Unstage vol") })
}

// TestAPodIsToldForWhomItWaits: a driver may take its time, but a pod that starts or ends meanwhile is told which driver that is.
func TestAPodIsToldForWhomItWaits(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(nil))
	w.end()
	w.patience = time.Millisecond
	w.start()
	w.register()
	waits := func(method, want string) {
		t.Helper()
		if told := <-w.events.Events; told != want {
			t.Errorf("the pod was told %q, want %q", told, want)
		}
		w.driver.GoOn(method)
	}
	for _, method := range []string{"Stage", "Publish", "Unpublish"} {
		w.driver.Hang(method, true)
	}
	done := make(chan error)
	go func() {
		_, err := w.m.Mount(t.Context(), csi.Volume{Pod: pod("one"), Name: "data", PV: pv(nil)})
		done <- err
	}()
	waits("Stage", `Warning FailedMount the CSI driver d has not answered NodeStageVolume for volume "pv" for 1ms; it may take 2m0s`)
	waits("Publish", `Warning FailedMount the CSI driver d has not answered NodePublishVolume for volume "pv" for 1ms; it may take 2m0s`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	go func() { done <- w.unmount("one") }()
	waits("Unpublish", `Warning FailedUnMount the CSI driver d has not answered NodeUnpublishVolume for volume "pv" for 1ms; it may take 2m0s`)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
