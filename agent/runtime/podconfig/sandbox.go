package podconfig

import (
	"maps"
	"path/filepath"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/resolvconf"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// Dirs says where a node keeps the files of its pods.
type Dirs struct {
	Root string
	// LogsRoot is where the logs of new pods are; "": in a folder of Root.
	LogsRoot string
	// FormerLogs are other places, where those of older pods may be.
	FormerLogs []string
}

const (
	podsDir   = "pods"
	accessDir = "image-access"
	localDir  = "local-volumes"
	// pluginsDir and registryDir are where plugins have their sockets, upstream's names.
	pluginsDir  = "plugins"
	registryDir = "plugins_registry"
	// devicesDir and resourcesDir are where device plugins register and monitors ask, upstream's names.
	devicesDir   = "device-plugins"
	resourcesDir = "pod-resources"
	// podsAPIDir is where programs ask for the node's pods, upstream's name.
	podsAPIDir = "pods-api"
	// seccompDir is the administrator's: profiles that pods name.
	seccompDir = "seccomp"
)

// Pods is the directory of the pods' own, which are named by their uids.
func (d Dirs) Pods() string { return filepath.Join(d.Root, podsDir) }

// All are the folders below Root; each is closed to other users by itself.
func (d Dirs) All() []string {
	return []string{d.Pods(), d.ownLogs(), d.ImageAccess(), d.Seccomp(), d.LocalVolumes(), d.Plugins(), d.PluginRegistry(),
		d.DevicePlugins(), d.PodResources(), d.PodsAPI()}
}

// ImageAccess is the directory of the records of who may use which image.
func (d Dirs) ImageAccess() string { return filepath.Join(d.Root, accessDir) }

// Plugins is the directory of plugins' own files, and of what CSI drivers stage.
func (d Dirs) Plugins() string { return filepath.Join(d.Root, pluginsDir) }

// PluginRegistry is the directory in which plugins open the sockets by which they are found.
func (d Dirs) PluginRegistry() string { return filepath.Join(d.Root, registryDir) }

// DevicePlugins is the directory of the sockets of device plugins, and of the record of who has which device.
func (d Dirs) DevicePlugins() string { return filepath.Join(d.Root, devicesDir) }

// Claims is the file that says which pods use which ResourceClaims, upstream's name.
func (d Dirs) Claims() string { return filepath.Join(d.Root, "dra_manager_state") }

// Names is the file of the Services and slices from which the node's DNS answers while no server is there.
func (d Dirs) Names() string { return filepath.Join(d.Root, "names") }

// PodResources is the directory of the socket at which monitors ask which pod has which device.
func (d Dirs) PodResources() string { return filepath.Join(d.Root, resourcesDir) }

// PodsAPI is the directory of the socket at which programs ask for the node's pods.
func (d Dirs) PodsAPI() string { return filepath.Join(d.Root, podsAPIDir) }

// LocalVolumes is the directory of the volumes of the class setpoint-local.
func (d Dirs) LocalVolumes() string { return filepath.Join(d.Root, localDir) }

// Seccomp is the directory below which the profiles of type Localhost lie, upstream's name.
func (d Dirs) Seccomp() string { return filepath.Join(d.Root, seccompDir) }

// Pod is the directory of everything but logs of one pod.
func (d Dirs) Pod(pod *corev1.Pod) string { return filepath.Join(d.Pods(), string(pod.UID)) }

// Container is the directory of one container's own files.
func (d Dirs) Container(pod *corev1.Pod, name string) string {
	return filepath.Join(d.Pod(pod), "containers", name)
}

// TerminationLog is the host's side of the termination message of one incarnation.
func (d Dirs) TerminationLog(pod *corev1.Pod, name string, attempt int) string {
	return filepath.Join(d.Container(pod, name), "termination-"+strconv.Itoa(attempt))
}

// Sandbox is the configuration of the pod's attempt-th sandbox; users are nil if the pod has the host's. The error is about the pod's spec.
func Sandbox(
	pod *corev1.Pod, attempt uint32, dirs Dirs, dns resolvconf.Node, users *userns.Range, node Node,
) (*runtimeapi.PodSandboxConfig, error) {
	hostname, err := hostname(pod, dns.Domain)
	if err != nil {
		return nil, err
	}
	resolver, _ := dns.Pod(pod)
	cfg := &runtimeapi.PodSandboxConfig{
		Metadata:     &runtimeapi.PodSandboxMetadata{Name: pod.Name, Namespace: pod.Namespace, Uid: string(pod.UID), Attempt: attempt},
		Hostname:     hostname,
		LogDirectory: dirs.PodLogs(pod),
		DnsConfig:    resolver,
		PortMappings: portMappings(pod),
		Labels:       podLabels(pod),
		Annotations:  maps.Clone(pod.Annotations),
		Linux: &runtimeapi.LinuxPodSandboxConfig{
			CgroupParent:    CgroupParent(pod),
			SecurityContext: sandboxSecurity(pod, users),
			Resources:       PodResources(pod, node),
		},
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
	return cfg, nil
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
