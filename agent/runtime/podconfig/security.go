package podconfig

import (
	"fmt"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// What a container must not see or write unless it is privileged or asks for
// the unmasked /proc.
var (
	maskedPaths = []string{
		"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats", "/proc/timer_list",
		"/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap",
	}
	readonlyPaths = []string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
)

// namespaces says which namespaces the pod shares with the node.
func namespaces(pod *corev1.Pod, users *userns.Range) *runtimeapi.NamespaceOption {
	n := &runtimeapi.NamespaceOption{
		Network:       runtimeapi.NamespaceMode_POD,
		Ipc:           runtimeapi.NamespaceMode_POD,
		Pid:           runtimeapi.NamespaceMode_CONTAINER,
		UsernsOptions: userNamespace(users),
	}
	if pod.Spec.HostNetwork {
		n.Network = runtimeapi.NamespaceMode_NODE
	}
	if pod.Spec.HostIPC {
		n.Ipc = runtimeapi.NamespaceMode_NODE
	}
	if share := pod.Spec.ShareProcessNamespace; share != nil && *share {
		n.Pid = runtimeapi.NamespaceMode_POD
	}
	if pod.Spec.HostPID {
		n.Pid = runtimeapi.NamespaceMode_NODE
	}
	return n
}

func podSecurity(pod *corev1.Pod) *corev1.PodSecurityContext {
	if pod.Spec.SecurityContext != nil {
		return pod.Spec.SecurityContext
	}
	return &corev1.PodSecurityContext{}
}

// effective is c's security context with the pod's values where c has none.
func effective(pod *corev1.Pod, c *corev1.Container) *corev1.SecurityContext {
	out := &corev1.SecurityContext{}
	if c.SecurityContext != nil {
		out = c.SecurityContext.DeepCopy()
	}
	p := podSecurity(pod)
	fill(&out.RunAsUser, p.RunAsUser)
	fill(&out.RunAsGroup, p.RunAsGroup)
	fill(&out.RunAsNonRoot, p.RunAsNonRoot)
	fill(&out.SELinuxOptions, p.SELinuxOptions)
	fill(&out.SeccompProfile, p.SeccompProfile)
	fill(&out.AppArmorProfile, p.AppArmorProfile)
	return out
}

func fill[T any](to **T, from *T) {
	if *to == nil {
		*to = from
	}
}

// checkNonRoot refuses to run as root what must not.
func checkNonRoot(pod *corev1.Pod, c *corev1.Container, image *runtimeapi.Image) error {
	sc := effective(pod, c)
	if sc.RunAsNonRoot == nil || !*sc.RunAsNonRoot {
		return nil
	}
	where := fmt.Sprintf("(pod: %q, container: %s)", pod.Name+"_"+pod.Namespace+"("+string(pod.UID)+")", c.Name)
	switch {
	case sc.RunAsUser != nil && *sc.RunAsUser == 0:
		return &ConfigError{Message: "container's runAsUser breaks non-root policy " + where}
	case sc.RunAsUser != nil:
		return nil
	case image.GetUid() != nil && image.Uid.Value != 0:
		return nil
	case image.GetUid() == nil && image.GetUsername() != "":
		return &ConfigError{
			Message: fmt.Sprintf(
				"container has runAsNonRoot and image has non-numeric user (%s), cannot verify user is non-root %s",
				image.Username,
				where,
			),
		}
	default:
		return &ConfigError{Message: "container has runAsNonRoot and image will run as root " + where}
	}
}

func containerSecurity(in ContainerInput) *runtimeapi.LinuxContainerSecurityContext {
	pod := in.Pod
	sc := effective(pod, in.Container)
	out := &runtimeapi.LinuxContainerSecurityContext{
		Privileged:         isTrue(sc.Privileged),
		ReadonlyRootfs:     isTrue(sc.ReadOnlyRootFilesystem),
		NoNewPrivs:         sc.AllowPrivilegeEscalation != nil && !*sc.AllowPrivilegeEscalation,
		NamespaceOptions:   namespaces(pod, in.Users),
		SupplementalGroups: supplementalGroups(pod),
		Seccomp:            profile(sc.SeccompProfile, in),
		Apparmor:           appArmor(sc.AppArmorProfile),
		Capabilities:       capabilities(sc.Capabilities),
		MaskedPaths:        maskedPaths,
		ReadonlyPaths:      readonlyPaths,
		SelinuxOptions:     selinux(sc.SELinuxOptions),
	}
	if sc.ProcMount != nil && *sc.ProcMount == corev1.UnmaskedProcMount {
		out.MaskedPaths, out.ReadonlyPaths = []string{}, []string{} // without any, a runtime may have its own
	}
	if p := podSecurity(pod).SupplementalGroupsPolicy; p != nil && *p == corev1.SupplementalGroupsPolicyStrict {
		out.SupplementalGroupsPolicy = runtimeapi.SupplementalGroupsPolicy_Strict
	}
	if in.Target != "" {
		out.NamespaceOptions.Pid, out.NamespaceOptions.TargetId = runtimeapi.NamespaceMode_TARGET, in.Target
	}
	setUser(out, sc, in.Image)
	return out
}

// setUser takes the image's user where the spec has none, for runtimes that
// leave it to the kubelet.
func setUser(out *runtimeapi.LinuxContainerSecurityContext, sc *corev1.SecurityContext, image *runtimeapi.Image) {
	switch {
	case sc.RunAsUser != nil:
		out.RunAsUser = &runtimeapi.Int64Value{Value: *sc.RunAsUser}
	case image.GetUid() != nil:
		out.RunAsUser = &runtimeapi.Int64Value{Value: image.Uid.Value}
	default:
		out.RunAsUsername = image.GetUsername()
	}
	if sc.RunAsGroup != nil && (out.RunAsUser != nil || out.RunAsUsername != "") {
		out.RunAsGroup = &runtimeapi.Int64Value{Value: *sc.RunAsGroup}
	} else if sc.RunAsGroup != nil {
		out.RunAsUser, out.RunAsGroup = &runtimeapi.Int64Value{}, &runtimeapi.Int64Value{Value: *sc.RunAsGroup}
	}
}

func supplementalGroups(pod *corev1.Pod) []int64 {
	p := podSecurity(pod)
	out := append([]int64(nil), p.SupplementalGroups...)
	if p.FSGroup != nil {
		out = append(out, *p.FSGroup)
	}
	return out
}

func sandboxSecurity(pod *corev1.Pod, users *userns.Range) *runtimeapi.LinuxSandboxSecurityContext {
	p := podSecurity(pod)
	out := &runtimeapi.LinuxSandboxSecurityContext{
		NamespaceOptions:   namespaces(pod, users),
		SupplementalGroups: supplementalGroups(pod),
		Seccomp:            &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault},
		SelinuxOptions:     selinux(p.SELinuxOptions),
		Privileged:         anyPrivileged(pod),
	}
	if p.RunAsUser != nil {
		out.RunAsUser = &runtimeapi.Int64Value{Value: *p.RunAsUser}
		if p.RunAsGroup != nil {
			out.RunAsGroup = &runtimeapi.Int64Value{Value: *p.RunAsGroup}
		}
	}
	return out
}

func anyPrivileged(pod *corev1.Pod) bool {
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if isTrue(effective(pod, &list[i]).Privileged) {
				return true
			}
		}
	}
	return false
}

// profile of a container that names none is the runtime's by the node's default, and else unconfined.
func profile(p *corev1.SeccompProfile, in ContainerInput) *runtimeapi.SecurityProfile {
	if p == nil && in.SeccompDefault {
		p = &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}
	}
	switch {
	case p == nil || p.Type == corev1.SeccompProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case p.Type == corev1.SeccompProfileTypeLocalhost && p.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{
			ProfileType:  runtimeapi.SecurityProfile_Localhost,
			LocalhostRef: filepath.Join(in.SeccompDir, *p.LocalhostProfile),
		}
	default:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	}
}

// appArmor is nil for a container that names no profile: the runtime has a default.
func appArmor(p *corev1.AppArmorProfile) *runtimeapi.SecurityProfile {
	switch {
	case p == nil:
		return nil
	case p.Type == corev1.AppArmorProfileTypeUnconfined:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case p.Type == corev1.AppArmorProfileTypeLocalhost && p.LocalhostProfile != nil:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: *p.LocalhostProfile}
	default:
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
	}
}

func capabilities(c *corev1.Capabilities) *runtimeapi.Capability {
	if c == nil {
		return nil
	}
	names := func(list []corev1.Capability) []string {
		var out []string
		for _, n := range list {
			out = append(out, strings.ToUpper(string(n)))
		}
		return out
	}
	return &runtimeapi.Capability{AddCapabilities: names(c.Add), DropCapabilities: names(c.Drop)}
}

// SELinux is what a container says of its label, or its pod for it; nil if neither does.
func SELinux(pod *corev1.Pod, c *corev1.Container) *runtimeapi.SELinuxOption {
	return selinux(effective(pod, c).SELinuxOptions)
}

func selinux(o *corev1.SELinuxOptions) *runtimeapi.SELinuxOption {
	if o == nil {
		return nil
	}
	return &runtimeapi.SELinuxOption{User: o.User, Role: o.Role, Type: o.Type, Level: o.Level}
}

func isTrue(b *bool) bool { return b != nil && *b }
