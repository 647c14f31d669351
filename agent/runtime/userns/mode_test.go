package userns

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"
)

func TestWhichPodsHaveAUserNamespace(t *testing.T) {
	with := func(change func(*corev1.PodSpec)) corev1.PodSpec {
		spec := corev1.PodSpec{Containers: []corev1.Container{{Name: "main"}}}
		change(&spec)
		return spec
	}
	security := func(s corev1.SecurityContext) corev1.PodSpec {
		return with(func(spec *corev1.PodSpec) { spec.Containers[0].SecurityContext = &s })
	}
	volume := func(source corev1.VolumeSource) corev1.PodSpec {
		return with(func(spec *corev1.PodSpec) { spec.Volumes = []corev1.Volume{{VolumeSource: source}} })
	}
	for name, test := range map[string]struct {
		spec             corev1.PodSpec
		asked, auto, all bool
	}{
		"plain":        {with(func(*corev1.PodSpec) {}), false, true, true},
		"asks":         {with(func(s *corev1.PodSpec) { s.HostUsers = ptr.To(false) }), true, true, true},
		"asks not to":  {with(func(s *corev1.PodSpec) { s.HostUsers = ptr.To(true) }), false, false, false},
		"host network": {with(func(s *corev1.PodSpec) { s.HostNetwork = true }), false, false, false},
		"host PID":     {with(func(s *corev1.PodSpec) { s.HostPID = true }), false, false, false},
		"host IPC":     {with(func(s *corev1.PodSpec) { s.HostIPC = true }), false, false, false},
		"privileged":   {security(corev1.SecurityContext{Privileged: ptr.To(true)}), false, false, false},
		"privileged init": {with(func(s *corev1.PodSpec) {
			s.InitContainers = []corev1.Container{{SecurityContext: &corev1.SecurityContext{Privileged: ptr.To(true)}}}
		}), false, false, false},
		"capability": {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"SYS_TIME"}}}), false, false, true},
		"drops":      {security(corev1.SecurityContext{Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}}), false, true, true},
		"known user": {security(corev1.SecurityContext{RunAsUser: ptr.To[int64](65535)}), false, true, true},
		"high user":  {security(corev1.SecurityContext{RunAsUser: ptr.To[int64](65536)}), false, false, true},
		"high fsGroup": {with(func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{FSGroup: ptr.To[int64](65536)}
		}), false, false, true},
		"high group": {with(func(s *corev1.PodSpec) {
			s.SecurityContext = &corev1.PodSecurityContext{SupplementalGroups: []int64{65536}}
		}), false, false, true},
		"secret":     {volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{}}), false, true, true},
		"host path":  {volume(corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}), false, false, true},
		"huge pages": {volume(corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{Medium: "HugePages"}}), false, false, true},
		"claim":      {volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{}}), false, false, true},
		"plugin's device": {with(func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Limits = corev1.ResourceList{"example.com/gpu": resource.MustParse("1")}
		}), false, false, true},
		"claimed device": {with(func(s *corev1.PodSpec) {
			s.Containers[0].Resources.Claims = []corev1.ResourceClaim{{Name: "gpu"}}
		}), false, false, true},
		"block": {with(func(s *corev1.PodSpec) {
			s.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "disk"}}
		}), false, false, true},
	} {
		for mode, want := range map[Mode]bool{Asked: test.asked, Auto: test.auto, All: test.all} {
			if got := mode.Wants(&corev1.Pod{Spec: test.spec}); got != want {
				t.Errorf("%s, %s: %v", name, mode, got)
			}
		}
	}
}

func TestModesAreValidated(t *testing.T) {
	if err := Mode("never").Validate(); err == nil || Auto.Validate() != nil {
		t.Error(err)
	}
}
