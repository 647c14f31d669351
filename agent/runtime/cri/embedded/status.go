package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/internal/podfields"
)

// Name and versions by which the runtime presents itself.
const (
	RuntimeName    = "setpoint-embedded"
	RuntimeVersion = "1.0.0"
	apiVersion     = "v1"
)

// Version names the runtime.
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{
		Version: "0.1.0", RuntimeName: RuntimeName, RuntimeVersion: RuntimeVersion, RuntimeApiVersion: apiVersion,
	}, nil
}

// Can implements cri.Limited.
func (r *Runtime) Can() podfields.Node {
	node := podfields.Embedded
	node.AppArmor = r.apparmor.Enabled()
	node.SELinux, node.NoSELinux = r.selinux.Enabled(), !machine.HasSELinux()
	node.UserNamespaces = r.hasUsers()
	node.HostPorts6 = r.network.IsDual()
	node.HugePageLimits = cgroup.HugePages()
	return node
}

// Status reports RuntimeReady if this machine can run containers, and NetworkReady once the node has its pod CIDR.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{
		Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
			cri.Condition(runtimeapi.RuntimeReady, "ContainersCannotRun", r.preflight.check(r)),
			cri.Condition(runtimeapi.NetworkReady, "NetworkNotReady", r.network.Ready()),
			cri.Condition(cri.AppArmorReady, "NoAppArmorProfile", r.apparmor.Prepare()),
			cri.Condition(cri.SELinuxReady, "NoSELinuxLabels", r.selinux.Problem()),
			cri.Condition(cri.UserNamespacesReady, "NoUserNamespaces", r.usersProblem()),
		}},
		RuntimeHandlers: []*runtimeapi.RuntimeHandler{{Features: &runtimeapi.RuntimeHandlerFeatures{
			RecursiveReadOnlyMounts: true, UserNamespaces: r.hasUsers(),
		}}},
		Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: true},
	}, nil
}

// RuntimeConfig tells which cgroup driver is used.
func (r *Runtime) RuntimeConfig(context.Context) (*runtimeapi.RuntimeConfigResponse, error) {
	return &runtimeapi.RuntimeConfigResponse{
		Linux: &runtimeapi.LinuxRuntimeConfiguration{CgroupDriver: runtimeapi.CgroupDriver_CGROUPFS},
	}, nil
}

// ListPodSandbox lists sandboxes, newest first.
func (r *reporter) ListPodSandbox(_ context.Context, by *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	var list []*runtimeapi.PodSandbox
	for _, s := range r.table.allSandboxes() {
		if !passesLabels(s.config.GetLabels(), by.GetLabelSelector()) {
			continue // most of them: each pod is asked for by its labels
		}
		if item := s.item(); passesSandbox(item, by) {
			list = append(list, item)
		}
	}
	slices.SortFunc(list, func(a, b *runtimeapi.PodSandbox) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list, nil
}

func (s *sandbox) item() *runtimeapi.PodSandbox {
	full := s.status()
	return &runtimeapi.PodSandbox{
		Id: full.Id, Metadata: full.Metadata, State: full.State, CreatedAt: full.CreatedAt, Labels: full.Labels,
		Annotations: full.Annotations, RuntimeHandler: full.RuntimeHandler,
	}
}

func (s *sandbox) status() *runtimeapi.PodSandboxStatus {
	s.mu.Lock()
	record := s.record
	s.mu.Unlock()
	state := runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	if record.Ready {
		state = runtimeapi.PodSandboxState_SANDBOX_READY
	}
	return &runtimeapi.PodSandboxStatus{
		Id: s.id, Metadata: s.config.GetMetadata(), State: state, CreatedAt: record.CreatedAt.UnixNano(), Network: record.network(),
		Labels: s.config.GetLabels(), Annotations: s.config.GetAnnotations(), RuntimeHandler: record.Handler,
		Linux: &runtimeapi.LinuxPodSandboxStatus{Namespaces: &runtimeapi.Namespace{Options: namespaces(s.config)}},
	}
}

// network has no addresses once the sandbox is over, as containerd's: nobody is there, and they are given away when it is cleared away.
func (r sandboxRecord) network() *runtimeapi.PodSandboxNetworkStatus {
	if !r.Ready || !r.Endpoint.Address.IsValid() {
		return &runtimeapi.PodSandboxNetworkStatus{}
	}
	status := &runtimeapi.PodSandboxNetworkStatus{Ip: r.Endpoint.Address.String()}
	if second := r.Endpoint.Second; second.IsValid() {
		status.AdditionalIps = []*runtimeapi.PodIP{{Ip: second.String()}}
	}
	return status
}

// PodSandboxStatus reports one sandbox; verbose adds its shim's pid.
func (r *reporter) PodSandboxStatus(_ context.Context, id string, verbose bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	s, err := r.table.sandbox(id)
	if err != nil {
		return nil, err
	}
	response := &runtimeapi.PodSandboxStatusResponse{Status: s.status()}
	if verbose {
		s.mu.Lock()
		defer s.mu.Unlock()
		response.Info = info(map[string]any{"pid": s.record.ShimPID, "cgroup": s.record.CgroupPath})
	}
	return response, nil
}

func info(values map[string]any) map[string]string {
	data, err := json.Marshal(values)
	if err != nil {
		return nil
	}
	return map[string]string{"info": string(data)}
}

// ListContainers lists containers, newest first.
func (r *reporter) ListContainers(_ context.Context, by *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	var list []*runtimeapi.Container
	for _, c := range r.table.allContainers() {
		if !passesLabels(c.config.GetLabels(), by.GetLabelSelector()) {
			continue
		}
		if item := c.item(); passesContainer(item, by) {
			list = append(list, item)
		}
	}
	slices.SortFunc(list, func(a, b *runtimeapi.Container) int { return cmp.Compare(b.CreatedAt, a.CreatedAt) })
	return list, nil
}

func (c *container) item() *runtimeapi.Container {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &runtimeapi.Container{
		Id: c.id, PodSandboxId: c.sandbox.id, Metadata: c.config.GetMetadata(), Image: c.config.GetImage(),
		ImageRef: c.record.ImageID, ImageId: c.record.ImageID, State: c.state(), CreatedAt: c.record.CreatedAt.UnixNano(),
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(),
	}
}

// ContainerStatus reports one container; verbose adds its pid.
func (r *reporter) ContainerStatus(_ context.Context, id string, verbose bool) (*runtimeapi.ContainerStatusResponse, error) {
	c, err := r.table.container(id)
	if err != nil {
		return nil, err
	}
	response := &runtimeapi.ContainerStatusResponse{Status: r.statusOf(c)}
	if verbose {
		c.mu.Lock()
		defer c.mu.Unlock()
		response.Info = info(map[string]any{"pid": c.record.PID, "cgroup": c.record.CgroupPath, "sandboxID": c.sandbox.id})
	}
	return response, nil
}

func (r *reporter) statusOf(c *container) *runtimeapi.ContainerStatus {
	c.mu.Lock()
	defer c.mu.Unlock()
	record := c.record
	full := &runtimeapi.ContainerStatus{
		Id: c.id, Metadata: c.config.GetMetadata(), State: c.state(), CreatedAt: record.CreatedAt.UnixNano(),
		Image: r.imageName(c), ImageRef: r.imageRef(record.ImageID), ImageId: record.ImageID,
		Labels: c.config.GetLabels(), Annotations: c.config.GetAnnotations(), Mounts: c.config.GetMounts(), LogPath: record.LogPath,
		Resources: &runtimeapi.ContainerResources{Linux: c.resources},
	}
	if identity := record.Process.Identity; identity != nil {
		full.User = reportedUser(identity)
	}
	if !record.StartedAt.IsZero() {
		full.StartedAt = record.StartedAt.UnixNano()
	}
	if exit := record.Exit; exit != nil {
		full.FinishedAt = exit.FinishedAt.UnixNano()
		full.ExitCode = int32(exit.Code)
		full.Reason, full.Message = reasonOf(&record), exit.Message
	}
	return full
}

// reportedUser is who the first process of a container is.
func reportedUser(identity *boot.Identity) *runtimeapi.ContainerUser {
	user := &runtimeapi.LinuxContainerUser{Uid: int64(identity.UID), Gid: int64(identity.GID)}
	for _, group := range identity.Groups {
		user.SupplementalGroups = append(user.SupplementalGroups, int64(group))
	}
	return &runtimeapi.ContainerUser{Linux: user}
}

// imageRef is the image's repository digest if it has one, else its id.
func (r *reporter) imageRef(id string) string {
	if image, err := r.images.Get(id); err == nil && len(image.Digests) > 0 {
		return image.Digests[0]
	}
	return id
}

// imageName is the name the user knows, even when the agent asked for the image by id.
func (r *reporter) imageName(c *container) *runtimeapi.ImageSpec {
	spec := c.config.GetImage()
	if !strings.HasPrefix(spec.GetImage(), "sha256:") {
		return spec
	}
	name := spec.GetUserSpecifiedImage()
	if image, err := r.images.Get(spec.GetImage()); name == "" && err == nil && len(image.Tags) > 0 {
		name = image.Tags[0]
	}
	if name == "" {
		return spec
	}
	return &runtimeapi.ImageSpec{Image: name, UserSpecifiedImage: spec.GetUserSpecifiedImage(), Annotations: spec.GetAnnotations()}
}

func reasonOf(record *containerRecord) string {
	switch {
	case record.OOMKilled:
		return reasonOOMKilled
	case record.Exit.Reason != "":
		return record.Exit.Reason
	case record.Exit.Code == 0:
		return reasonCompleted
	default:
		return reasonError
	}
}

// CheckpointContainer is refused: it needs CRIU.
func (r *Runtime) CheckpointContainer(context.Context, *runtimeapi.CheckpointContainerRequest) error {
	return errCheckpoint()
}

// CheckpointPod is refused: it needs CRIU.
func (r *Runtime) CheckpointPod(context.Context, *runtimeapi.CheckpointPodRequest) error {
	return errCheckpoint()
}

// RestorePod is refused: it needs CRIU.
func (r *Runtime) RestorePod(context.Context, *runtimeapi.RestorePodRequest) (*runtimeapi.RestorePodResponse, error) {
	return nil, errCheckpoint()
}

func errCheckpoint() error {
	return status.Error(codes.Unimplemented, "the embedded runtime cannot checkpoint; use containerd or CRI-O with CRIU")
}
