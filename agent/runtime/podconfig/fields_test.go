package podconfig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/internal/podfields"
)

func to[T any](v T) *T { return &v }

func securityOf(p *corev1.Pod) *runtimeapi.LinuxContainerSecurityContext {
	return containerSecurity(ContainerInput{EnvInput: EnvInput{Pod: p}, Container: &p.Spec.Containers[0], Image: &runtimeapi.Image{}, SeccompDir: "/data/seccomp"})
}

func TestSetHostnameAsFQDN(t *testing.T) {
	for name, tc := range map[string]struct {
		edit func(*corev1.PodSpec)
		want string
		err  string
	}{
		"without":             {func(s *corev1.PodSpec) { s.SetHostnameAsFQDN = nil }, "web-0", ""},
		"with":                {func(*corev1.PodSpec) {}, "web-0.db.ns.svc.cluster.local", ""},
		"without a subdomain": {func(s *corev1.PodSpec) { s.Subdomain = "" }, "web-0", ""},
		"too long":            {func(s *corev1.PodSpec) { s.Subdomain = strings.Repeat("d", 40) }, "", "is too long (64 characters is the max, 67 characters requested)"},
	} {
		p := testPod()
		p.Spec.Hostname, p.Spec.Subdomain, p.Spec.SetHostnameAsFQDN = "web-0", "db", to(true)
		tc.edit(&p.Spec)
		cfg, err := Sandbox(p, 0, Dirs{Root: "/data"}, resolvconf.Node{Domain: "cluster.local"}, nil, Node{})
		if cfg.GetHostname() != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: %q %v", name, cfg.GetHostname(), err)
		}
	}
}

func TestRecursiveReadOnly(t *testing.T) {
	for _, tc := range []struct {
		mode  *corev1.RecursiveReadOnlyMode
		can   bool
		want  bool
		fails bool
	}{
		{nil, true, false, false},
		{to(corev1.RecursiveReadOnlyDisabled), true, false, false},
		{to(corev1.RecursiveReadOnlyIfPossible), true, true, false},
		{to(corev1.RecursiveReadOnlyIfPossible), false, false, false},
		{to(corev1.RecursiveReadOnlyEnabled), true, true, false},
		{to(corev1.RecursiveReadOnlyEnabled), false, false, true},
	} {
		c := &corev1.Container{VolumeMounts: []corev1.VolumeMount{{Name: "first"}, {Name: "data", ReadOnly: true, RecursiveReadOnly: tc.mode}}}
		mounts := []*runtimeapi.Mount{{}, {Readonly: true}, {}}
		err := RecurseReadOnly(c, mounts, podfields.Node{RecursiveReadOnly: tc.can})
		if mounts[1].RecursiveReadOnly != tc.want || mounts[0].RecursiveReadOnly || (err != nil) != tc.fails {
			t.Errorf("%v, can %t: %v %v", tc.mode, tc.can, mounts, err)
		}
	}
}

func TestProfiles(t *testing.T) {
	p := testPod()
	if got := securityOf(p); got.Apparmor != nil || got.Seccomp.ProfileType != runtimeapi.SecurityProfile_Unconfined {
		t.Errorf("without: %v %v", got.Apparmor, got.Seccomp)
	}
	p.Spec.SecurityContext = &corev1.PodSecurityContext{
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeLocalhost, LocalhostProfile: to("team/strict.json")},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeLocalhost, LocalhostProfile: to("strict")},
	}
	got := securityOf(p)
	if got.Seccomp.LocalhostRef != "/data/seccomp/team/strict.json" {
		t.Errorf("seccomp profile %v is not in the agent's folder", got.Seccomp)
	}
	if got.Apparmor.GetProfileType() != runtimeapi.SecurityProfile_Localhost || got.Apparmor.LocalhostRef != "strict" {
		t.Errorf("AppArmor profile %v", got.Apparmor)
	}
}

func TestTarget(t *testing.T) {
	p := testPod()
	got := containerSecurity(ContainerInput{EnvInput: EnvInput{Pod: p}, Container: &p.Spec.Containers[0], Image: &runtimeapi.Image{}, Target: "main"}).NamespaceOptions
	if got.Pid != runtimeapi.NamespaceMode_TARGET || got.TargetId != "main" {
		t.Errorf("%v", got)
	}
}

func TestLimitsOfTheWholePod(t *testing.T) {
	p := testPod()
	p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
	if got := PodResources(p, Node{}); got.MemoryLimitInBytes != 0 {
		t.Errorf("without: %v", got)
	}
	p.Spec.Resources = &corev1.ResourceRequirements{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi"), corev1.ResourceCPU: resource.MustParse("500m")}}
	if got := PodResources(p, Node{QuotaPeriod: 10 * time.Millisecond}); got.CpuPeriod != 10000 || got.CpuQuota != 5000 {
		t.Errorf("with a period of the node: %+v", got)
	}
	if got := PodResources(p, Node{}); got.MemoryLimitInBytes != 64<<20 || got.CpuQuota != 50000 {
		t.Errorf("%v", got)
	}
	pages := resource.MustParse("4Mi")
	p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"hugepages-2Mi": pages}
	if got := PodResources(p, Node{Allocatable: corev1.ResourceList{"hugepages-2Mi": pages}}); got.HugepageLimits[0].Limit != 4<<20 {
		t.Errorf("%v", got)
	}
}

func TestStopSignal(t *testing.T) {
	for signal, want := range map[corev1.Signal]runtimeapi.Signal{
		"SIGUSR1": runtimeapi.Signal_SIGNAL_SIGUSR1, "SIGRTMIN+1": runtimeapi.Signal_SIGNAL_SIGRTMINPLUS1, "SIGRTMAX-14": runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS14,
	} {
		if got := stopSignal(&corev1.Container{Lifecycle: &corev1.Lifecycle{StopSignal: &signal}}); got != want {
			t.Errorf("%s: %s", signal, got)
		}
	}
}
