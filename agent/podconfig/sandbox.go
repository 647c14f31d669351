package podconfig

import (
	"maps"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/observed"
)

// Dirs says where a node keeps the files of its pods.
type Dirs struct{ Root string }

// Pod is the directory of everything but logs of one pod.
func (d Dirs) Pod(pod *corev1.Pod) string { return filepath.Join(d.Root, "pods", string(pod.UID)) }

// Logs is the directory of a pod's logs, named as upstream's.
func (d Dirs) Logs(namespace, name, uid string) string {
	return filepath.Join(d.Root, "logs", strings.Join([]string{namespace, name, uid}, "_"))
}

// PodLogs is Logs of pod.
func (d Dirs) PodLogs(pod *corev1.Pod) string {
	return d.Logs(pod.Namespace, pod.Name, string(pod.UID))
}

// Container is the directory of one container's own files.
func (d Dirs) Container(pod *corev1.Pod, name string) string {
	return filepath.Join(d.Pod(pod), "containers", name)
}

// TerminationLog is the host's side of the termination message of one incarnation.
func (d Dirs) TerminationLog(pod *corev1.Pod, name string, attempt int) string {
	return filepath.Join(d.Container(pod, name), "termination-"+strconv.Itoa(attempt))
}

// LogPath is where the runtime writes, relative to the sandbox's log directory.
func LogPath(container string, attempt int) string {
	return filepath.Join(container, strconv.Itoa(attempt)+".log")
}

// Sandbox is the configuration of the pod's attempt-th sandbox.
func Sandbox(pod *corev1.Pod, attempt uint32, dirs Dirs, dns DNS) *runtimeapi.PodSandboxConfig {
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		Hostname:     Hostname(pod),
		LogDirectory: dirs.PodLogs(pod),
		DnsConfig:    dns.config(pod),
		PortMappings: portMappings(pod),
		Labels:       podLabels(pod),
		Annotations:  maps.Clone(pod.Annotations),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    CgroupParent(pod),
			SecurityContext: sandboxSecurity(pod),
			Resources:       podResources(pod),
		},
	}
	if pod.Spec.HostNetwork {
		cfg.Hostname = ""
	}
	if cfg.Annotations == nil {
		cfg.Annotations = map[string]string{}
	}
	cfg.Annotations[observed.AnnotationGrace] = strconv.FormatInt(grace(pod), 10)
	for _, s := range podSecurity(pod).Sysctls {
		if cfg.Linux.Sysctls == nil {
			cfg.Linux.Sysctls = map[string]string{}
		}
		cfg.Linux.Sysctls[s.Name] = s.Value
	}
	return cfg
}

func grace(pod *corev1.Pod) int64 {
	if g := pod.Spec.TerminationGracePeriodSeconds; g != nil {
		return *g
	}
	return corev1.DefaultTerminationGracePeriodSeconds
}

// podLabels are the pod's own, for the runtime's users, and ours.
func podLabels(pod *corev1.Pod) map[string]string {
	out := maps.Clone(pod.Labels)
	if out == nil {
		out = map[string]string{}
	}
	out[observed.LabelPodName], out[observed.LabelPodNamespace], out[observed.LabelPodUID] = pod.Name, pod.Namespace, string(pod.UID)
	return out
}

func portMappings(pod *corev1.Pod) []*runtimeapi.PortMapping {
	if pod.Spec.HostNetwork {
		return nil
	}
	var out []*runtimeapi.PortMapping
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort == 0 {
				continue
			}
			proto := runtimeapi.Protocol_TCP
			switch p.Protocol {
			case corev1.ProtocolUDP:
				proto = runtimeapi.Protocol_UDP
			case corev1.ProtocolSCTP:
				proto = runtimeapi.Protocol_SCTP
			}
			out = append(out, &runtimeapi.PortMapping{Protocol: proto, ContainerPort: p.ContainerPort, HostPort: p.HostPort, HostIp: p.HostIP})
		}
	}
	return out
}
