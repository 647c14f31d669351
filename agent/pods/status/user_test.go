package status

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

func TestUserAndMounts(t *testing.T) {
	enabled, disabled := corev1.RecursiveReadOnlyEnabled, corev1.RecursiveReadOnlyDisabled
	c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{
		{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b", ReadOnly: true}, {Name: "c", MountPath: "/c", ReadOnly: true, RecursiveReadOnly: &enabled},
	}}
	made := &observed.Container{ContainerStatus: &runtimeapi.ContainerStatus{
		Mounts: []*runtimeapi.Mount{{ContainerPath: "/c", Readonly: true, RecursiveReadOnly: true}, {ContainerPath: "/b", Readonly: true}},
		User:   &runtimeapi.ContainerUser{Linux: &runtimeapi.LinuxContainerUser{Uid: 1000, Gid: 2000, SupplementalGroups: []int64{3000}}},
	}}
	want := []corev1.VolumeMountStatus{{Name: "a", MountPath: "/a"}, {Name: "b", MountPath: "/b", ReadOnly: true}, {Name: "c", MountPath: "/c", ReadOnly: true}}
	if diff := cmp.Diff(want, mounts(c, nil)); diff != "" {
		t.Error("before there is a container:", diff)
	}
	want[1].RecursiveReadOnly, want[2].RecursiveReadOnly = &disabled, &enabled
	if diff := cmp.Diff(want, mounts(c, made)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&corev1.ContainerUser{Linux: &corev1.LinuxContainerUser{UID: 1000, GID: 2000, SupplementalGroups: []int64{3000}}}, user(made)); diff != "" {
		t.Error(diff)
	}
	if got := user(&observed.Container{ContainerStatus: &runtimeapi.ContainerStatus{}}); got != nil {
		t.Errorf("the runtime does not say, and the status says %v", got)
	}
}
