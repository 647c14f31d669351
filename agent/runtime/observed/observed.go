package observed

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	"k8s.io/apimachinery/pkg/types"
	criapi "k8s.io/cri-api/pkg/apis"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	kubelettypes "k8s.io/kubelet/pkg/types"
)

// Labels and annotations on sandboxes and containers, as the kubelet names them.
const (
	LabelPodName       = kubelettypes.KubernetesPodNameLabel
	LabelPodNamespace  = kubelettypes.KubernetesPodNamespaceLabel
	LabelPodUID        = kubelettypes.KubernetesPodUIDLabel
	LabelContainerName = kubelettypes.KubernetesContainerNameLabel

	AnnotationRestartCount = "io.kubernetes.container.restartCount"
	AnnotationHash         = "io.kubernetes.container.hash"
	// AnnotationGrace holds the pod's grace period in seconds, for pods whose
	// API object is gone when the agent comes back.
	AnnotationGrace = "io.kubernetes.pod.terminationGracePeriod"
)

// Pod is everything the runtime knows about one pod.
type Pod struct {
	UID        types.UID
	Sandboxes  []*runtimeapi.PodSandboxStatus
	Containers []*Container
}

// Container is one incarnation of a container of a pod.
type Container struct {
	*runtimeapi.ContainerStatus
	SandboxID string
}

// Read takes a snapshot of the pod with the given uid. An unknown uid gives an
// empty Pod. Sandboxes are read after containers: one that has ended with its
// sandbox must not seem to have ended in one that is ready.
func Read(ctx context.Context, rt criapi.RuntimeService, uid types.UID) (*Pod, error) {
	pod := &Pod{UID: uid}
	labels := map[string]string{LabelPodUID: string(uid)}
	if err := pod.readContainers(ctx, rt, labels); err != nil {
		return nil, err
	}
	sandboxes, err := rt.ListPodSandbox(ctx, &runtimeapi.PodSandboxFilter{LabelSelector: labels})
	if err != nil {
		return nil, err
	}
	for _, s := range sandboxes {
		resp, err := rt.PodSandboxStatus(ctx, s.Id, false)
		if gone(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		pod.Sandboxes = append(pod.Sandboxes, resp.Status)
	}
	pod.sort()
	return pod, nil
}

func (p *Pod) readContainers(ctx context.Context, rt criapi.RuntimeService, labels map[string]string) error {
	list, err := rt.ListContainers(ctx, &runtimeapi.ContainerFilter{LabelSelector: labels})
	if err != nil {
		return err
	}
	for _, c := range list {
		resp, err := rt.ContainerStatus(ctx, c.Id, false)
		if gone(err) {
			continue
		}
		if err != nil {
			return err
		}
		p.Containers = append(p.Containers, &Container{ContainerStatus: resp.Status, SandboxID: c.PodSandboxId})
	}
	return nil
}

func (p *Pod) sort() {
	slices.SortStableFunc(p.Sandboxes, func(a, b *runtimeapi.PodSandboxStatus) int {
		return cmp.Or(cmp.Compare(b.CreatedAt, a.CreatedAt), cmp.Compare(b.Metadata.GetAttempt(), a.Metadata.GetAttempt()))
	})
	slices.SortStableFunc(p.Containers, func(a, b *Container) int {
		return cmp.Or(cmp.Compare(b.RestartCount(), a.RestartCount()), cmp.Compare(b.CreatedAt, a.CreatedAt))
	})
}

func gone(err error) bool { return grpcstatus.Code(err) == codes.NotFound }

// Sandbox is the newest sandbox, or nil.
func (p *Pod) Sandbox() *runtimeapi.PodSandboxStatus {
	if len(p.Sandboxes) == 0 {
		return nil
	}
	return p.Sandboxes[0]
}

// ReadySandbox is the newest sandbox if it is ready, or nil.
func (p *Pod) ReadySandbox() *runtimeapi.PodSandboxStatus {
	if s := p.Sandbox(); s != nil && s.State == runtimeapi.PodSandboxState_SANDBOX_READY {
		return s
	}
	return nil
}

// Latest is the newest incarnation of the named container, or nil.
func (p *Pod) Latest(name string) *Container { return p.nth(name, 0) }

// Previous is the incarnation before the latest, or nil.
func (p *Pod) Previous(name string) *Container { return p.nth(name, 1) }

func (p *Pod) nth(name string, n int) *Container {
	for _, c := range p.Containers {
		if c.ContainerName() != name {
			continue
		}
		if n == 0 {
			return c
		}
		n--
	}
	return nil
}

// Running lists the containers that run right now, in no useful order.
func (p *Pod) Running() []*Container {
	var out []*Container
	for _, c := range p.Containers {
		if c.Running() {
			out = append(out, c)
		}
	}
	return out
}

// Empty reports whether the runtime holds nothing of the pod any more.
func (p *Pod) Empty() bool { return len(p.Sandboxes) == 0 && len(p.Containers) == 0 }

// Running reports whether the container's process lives. A container whose
// state the runtime does not know counts as running: it must be stopped first.
func (c *Container) Running() bool {
	return c.State == runtimeapi.ContainerState_CONTAINER_RUNNING || c.State == runtimeapi.ContainerState_CONTAINER_UNKNOWN
}

// Created reports whether the container has not been started yet.
func (c *Container) Created() bool { return c.State == runtimeapi.ContainerState_CONTAINER_CREATED }

// Exited reports whether the container ran and ended.
func (c *Container) Exited() bool { return c.State == runtimeapi.ContainerState_CONTAINER_EXITED }

// ContainerName is the name in the pod's spec.
func (c *Container) ContainerName() string {
	if n := c.Labels[LabelContainerName]; n != "" {
		return n
	}
	return c.Metadata.GetName()
}

// RestartCount is how many incarnations were created before this one.
func (c *Container) RestartCount() int {
	if n, err := strconv.Atoi(c.Annotations[AnnotationRestartCount]); err == nil {
		return n
	}
	return int(c.Metadata.GetAttempt())
}

// Key names one pod the runtime knows.
type Key struct {
	UID             types.UID
	Namespace, Name string
	// GraceSeconds is the grace period the pod was started with, or -1.
	GraceSeconds int64
}

// Keys lists every pod of which the runtime holds a sandbox or a container.
// Sandboxes without our labels belong to someone else and are not listed.
func Keys(ctx context.Context, rt criapi.RuntimeService) (map[types.UID]Key, error) {
	out := map[types.UID]Key{}
	add := func(labels, annotations map[string]string) {
		uid := types.UID(labels[LabelPodUID])
		if uid == "" {
			return
		}
		k := Key{UID: uid, Namespace: labels[LabelPodNamespace], Name: labels[LabelPodName], GraceSeconds: -1}
		if n, err := strconv.ParseInt(annotations[AnnotationGrace], 10, 64); err == nil {
			k.GraceSeconds = n
		}
		if old, ok := out[uid]; !ok || old.GraceSeconds < 0 {
			out[uid] = k
		}
	}
	sandboxes, err := rt.ListPodSandbox(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, s := range sandboxes {
		add(s.Labels, s.Annotations)
	}
	containers, err := rt.ListContainers(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, c := range containers {
		add(c.Labels, c.Annotations)
	}
	return out, nil
}
