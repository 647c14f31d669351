package podconfig

import (
	"context"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// ContainerInput is what a container's configuration depends on.
type ContainerInput struct {
	EnvInput
	Container *corev1.Container
	Attempt   int
	Image     *runtimeapi.Image
	// Mounts are the volumes, /etc/hosts and the termination log.
	Mounts []*runtimeapi.Mount
	// SeccompDir holds the profiles of type Localhost.
	SeccompDir string
	// SeccompDefault gives a container that names no profile the runtime's.
	SeccompDefault bool
	// Target is the id of the container whose processes this one sees; empty: its pod's or its own.
	Target string
	// Users are nil if the pod has the host's.
	Users *userns.Range
	// QuotaPeriod is the node's.
	QuotaPeriod time.Duration
}

// Container is the configuration of one incarnation of a container.
func Container(ctx context.Context, in ContainerInput) (*runtimeapi.ContainerConfig, error) {
	if err := checkNonRoot(in.Pod, in.Container, in.Image); err != nil {
		return nil, err
	}
	env, err := Env(ctx, in.EnvInput, in.Container)
	if err != nil {
		return nil, err
	}
	c := in.Container
	values := map[string]string{}
	for _, kv := range env {
		values[kv.Key] = string(kv.Value)
	}
	return &runtimeapi.ContainerConfig{
		Metadata:    &runtimeapi.ContainerMetadata{Name: c.Name, Attempt: uint32(in.Attempt)},
		Image:       &runtimeapi.ImageSpec{Image: in.Image.GetId(), UserSpecifiedImage: c.Image},
		Command:     expandAll(c.Command, values),
		Args:        expandAll(c.Args, values),
		WorkingDir:  c.WorkingDir,
		Envs:        env,
		Mounts:      in.Mounts,
		Labels:      containerLabels(in.Pod, c),
		Annotations: annotations(in.Pod, c, in.Attempt),
		LogPath:     LogPath(c.Name, in.Attempt),
		Stdin:       c.Stdin,
		StdinOnce:   c.StdinOnce,
		Tty:         c.TTY,
		StopSignal:  stopSignal(c),
		Linux: &runtimeapi.LinuxContainerConfig{
			Resources:       Resources(in.Pod, c, Node{in.Allocatable, in.QuotaPeriod}),
			SecurityContext: containerSecurity(in),
		},
	}, nil
}

func expandAll(list []string, values map[string]string) []string {
	var out []string
	for _, s := range list {
		out = append(out, Expand(s, values))
	}
	return out
}

func containerLabels(pod *corev1.Pod, c *corev1.Container) map[string]string {
	return map[string]string{
		observed.LabelPodName: pod.Name, observed.LabelPodNamespace: pod.Namespace,
		observed.LabelPodUID: string(pod.UID), observed.LabelContainerName: c.Name,
	}
}

func annotations(pod *corev1.Pod, c *corev1.Container, attempt int) map[string]string {
	return map[string]string{
		observed.AnnotationRestartCount: strconv.Itoa(attempt),
		observed.AnnotationHash:         Hash(c),
		observed.AnnotationGrace:        strconv.FormatInt(grace(pod), 10),
	}
}

// Hash changes with the parts of a container that can change in a running pod
// and need a new incarnation.
func Hash(c *corev1.Container) string {
	h := fnv.New32a()
	h.Write([]byte(c.Name + "\x00" + c.Image))
	return strconv.FormatUint(uint64(h.Sum32()), 16)
}

func stopSignal(c *corev1.Container) runtimeapi.Signal {
	if c.Lifecycle == nil || c.Lifecycle.StopSignal == nil {
		return runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT
	}
	name := strings.NewReplacer("+", "PLUS", "-", "MINUS").Replace(string(*c.Lifecycle.StopSignal)) // SIGRTMIN+1
	return runtimeapi.Signal(runtimeapi.Signal_value["SIGNAL_"+name])
}
