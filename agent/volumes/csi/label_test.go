package csi_test

import (
	"slices"
	"strings"
	"testing"

	spec "github.com/container-storage-interface/spec/lib/go/csi"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/volumes/csi"
)

func mountsLabelled(s *storagev1.CSIDriverSpec) { s.SELinuxMount = to(true) }

// labelled is a pod whose containers have these levels. All but the last use the volume; the pod's is that of those without one.
func labelled(uid types.UID, policy *corev1.PodSELinuxChangePolicy, levels ...string) *corev1.Pod {
	p := pod(uid)
	p.Spec.SecurityContext = &corev1.PodSecurityContext{SELinuxChangePolicy: policy, SELinuxOptions: &corev1.SELinuxOptions{Level: "s0:c1,c2"}}
	for i, level := range levels {
		c := corev1.Container{}
		if level != "" {
			c.SecurityContext = &corev1.SecurityContext{SELinuxOptions: &corev1.SELinuxOptions{Level: level}}
		}
		if i < len(levels)-1 {
			c.VolumeMounts = []corev1.VolumeMount{{Name: "data"}}
		}
		p.Spec.Containers = append(p.Spec.Containers, c)
	}
	return p
}

func (w *world) mountFor(p *corev1.Pod, v *corev1.PersistentVolume) (csi.Mounted, error) {
	return w.m.Mount(w.t.Context(), csi.Volume{Pod: p, Name: "data", PV: v, Token: token})
}

func TestMountsWithALabel(t *testing.T) {
	const option = `context="s0:c1,c2"`
	recursive, mounts := to(corev1.SELinuxChangePolicyRecursive), to(corev1.SELinuxChangePolicyMountOption)
	block := pv(func(v *corev1.PersistentVolume) { v.Spec.VolumeMode = to(corev1.PersistentVolumeBlock) })
	for name, test := range map[string]struct {
		driver  func(*storagev1.CSIDriverSpec)
		pod     *corev1.Pod
		volume  *corev1.PersistentVolume
		want    bool
		relabel bool
		err     string
	}{
		"the pod's":                 {mountsLabelled, labelled("a", nil, "", "s0:c9"), pv(nil), true, false, ""},
		"each container's":          {mountsLabelled, labelled("a", mounts, "s0:c1,c2", "", "s0:c9"), pv(nil), true, false, ""},
		"two labels":                {mountsLabelled, labelled("a", nil, "s0:c3", "", ""), pv(nil), false, false, "multiple SELinux labels found: s0:c1,c2,s0:c3"},
		"a driver that cannot":      {nil, labelled("a", nil, "", ""), pv(nil), false, true, ""},
		"file by file":              {mountsLabelled, labelled("a", recursive, "s0:c3", "", ""), pv(nil), false, true, ""},
		"no label":                  {mountsLabelled, pod("a"), pv(nil), false, true, ""},
		"a device":                  {mountsLabelled, labelled("a", nil, "", ""), block, false, false, ""},
		"two labels, one elsewhere": {mountsLabelled, labelled("a", nil, "", "s0:c3"), pv(nil), true, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, capable(stages), csiDriver(test.driver))
			w.register()
			at, err := w.mountFor(test.pod, test.volume)
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) {
					t.Errorf("%v", err)
				}
				return
			}
			if err != nil || at.Relabel != test.relabel {
				t.Fatalf("%+v %v", at, err)
			}
			staged := w.driver.Last("Stage").(*spec.NodeStageVolumeRequest).VolumeCapability.GetMount().GetMountFlags()
			published := w.driver.Last("Publish").(*spec.NodePublishVolumeRequest).VolumeCapability.GetMount().GetMountFlags()
			if slices.Contains(staged, option) != test.want || !slices.Equal(staged, published) {
				t.Errorf("staged with %q, published with %q", staged, published)
			}
		})
	}
}

// TestPodsWithOtherLabels wait for a volume until the pods with the first one are gone, also across a restart of the agent.
func TestPodsWithOtherLabels(t *testing.T) {
	w := newWorld(t, capable(stages), csiDriver(mountsLabelled))
	w.register()
	one, two, other := labelled("one", nil, "", ""), labelled("two", nil, "", ""), labelled("other", nil, "s0:c3", "")
	for _, p := range []*corev1.Pod{one, two} {
		if _, err := w.mountFor(p, pv(nil)); err != nil {
			t.Fatal(err)
		}
	}
	waits := func() {
		t.Helper()
		const want = `conflicting SELinux labels of volume pv: "s0:c1,c2" and "s0:c3"`
		if _, err := w.mountFor(other, pv(nil)); err == nil || !strings.Contains(err.Error(), want) {
			t.Error(err)
		}
	}
	waits()
	if err := w.unmount("one"); err != nil {
		t.Fatal(err)
	}
	waits()
	w.end()
	w.start()
	w.register()
	waits()
	w.driver.Calls()
	if err := w.unmount("two"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.mountFor(other, pv(nil)); err != nil {
		t.Fatal(err)
	}
	w.calls("Unpublish vol", "Unstage vol", "Stage vol", "Publish vol")
	if got := w.driver.Last("Stage").(*spec.NodeStageVolumeRequest).VolumeCapability.GetMount().MountFlags; !slices.Contains(got, `context="s0:c3"`) {
		t.Errorf("staged with %q", got)
	}
}
