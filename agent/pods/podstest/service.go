package podstest

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// Version names the runtime "setpoint".
func (r *Runtime) Version(context.Context, string) (*runtimeapi.VersionResponse, error) {
	return &runtimeapi.VersionResponse{RuntimeName: "setpoint", RuntimeVersion: "test"}, nil
}

// Status is always ready.
func (r *Runtime) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: []*runtimeapi.RuntimeCondition{
		{Type: runtimeapi.RuntimeReady, Status: true}, {Type: runtimeapi.NetworkReady, Status: true},
	}}}, nil
}

// UpdateRuntimeConfig takes any.
func (r *Runtime) UpdateRuntimeConfig(_ context.Context, cfg *runtimeapi.RuntimeConfig) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called("podcidr %s", cfg.GetNetworkConfig().GetPodCidr())
	return nil
}

// RunPodSandbox makes a ready one with an address.
func (r *Runtime) RunPodSandbox(_ context.Context, cfg *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handlers = append(r.handlers, handler)
	id := r.id("sandbox")
	r.sandboxes[id] = &runtimeapi.PodSandboxStatus{
		Id: id, Metadata: cfg.Metadata, CreatedAt: time.Now().UnixNano(), Labels: cfg.Labels, Annotations: cfg.Annotations,
		Network: &runtimeapi.PodSandboxNetworkStatus{Ip: fmt.Sprintf("10.42.0.%d", r.next)},
	}
	r.limits[id] = cfg.GetLinux().GetResources()
	r.called("run %s", cfg.Metadata.Name)
	return id, nil
}

// Handlers are those of the sandboxes that were run, in order.
func (r *Runtime) Handlers() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.handlers)
}

// StopPodSandbox ends its containers.
func (r *Runtime) StopPodSandbox(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[id]
	if s == nil {
		return nil
	}
	for _, c := range r.containers {
		if c.sandbox == id {
			r.exit(c, 137)
		}
	}
	s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	return nil
}

// RemovePodSandbox removes it and its containers.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	if err := r.StopPodSandbox(ctx, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for cid, c := range r.containers {
		if c.sandbox == id {
			delete(r.containers, cid)
		}
	}
	delete(r.sandboxes, id)
	return nil
}

// PodSandboxStatus of one.
func (r *Runtime) PodSandboxStatus(_ context.Context, id string, _ bool) (*runtimeapi.PodSandboxStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sandboxes[id]
	if s == nil {
		return nil, gone(id)
	}
	return &runtimeapi.PodSandboxStatusResponse{Status: &runtimeapi.PodSandboxStatus{
		Id: s.Id, Metadata: s.Metadata, State: s.State, CreatedAt: s.CreatedAt, Labels: s.Labels, Annotations: s.Annotations, Network: s.Network,
	}}, nil
}

// ListPodSandbox by labels.
func (r *Runtime) ListPodSandbox(_ context.Context, f *runtimeapi.PodSandboxFilter) ([]*runtimeapi.PodSandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listError != nil {
		return nil, r.listError
	}
	var out []*runtimeapi.PodSandbox
	for _, s := range r.sandboxes {
		if matches(s.Labels, f.GetLabelSelector()) {
			out = append(
				out,
				&runtimeapi.PodSandbox{
					Id:          s.Id,
					Metadata:    s.Metadata,
					State:       s.State,
					CreatedAt:   s.CreatedAt,
					Labels:      s.Labels,
					Annotations: s.Annotations,
				},
			)
		}
	}
	return out, nil
}

func matches(have, want map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

// CreateContainer makes one that has not started.
func (r *Runtime) CreateContainer(
	_ context.Context,
	sandbox string,
	cfg *runtimeapi.ContainerConfig,
	sandboxConfig *runtimeapi.PodSandboxConfig,
) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sandboxes[sandbox] == nil {
		return "", gone(sandbox)
	}
	for _, c := range r.containers {
		if c.sandbox == sandbox && c.Metadata.Name == cfg.Metadata.Name && c.Metadata.Attempt == cfg.Metadata.Attempt {
			return "", fmt.Errorf("container %s attempt %d exists", cfg.Metadata.Name, cfg.Metadata.Attempt)
		}
	}
	c := &container{sandbox: sandbox, config: cfg}
	c.Id, c.Metadata, c.Labels, c.Annotations = r.id("container"), cfg.Metadata, cfg.Labels, cfg.Annotations
	c.LogPath = filepath.Join(sandboxConfig.GetLogDirectory(), cfg.LogPath)
	c.Image, c.ImageRef, c.CreatedAt = &runtimeapi.ImageSpec{Image: cfg.Image.UserSpecifiedImage}, cfg.Image.Image, time.Now().UnixNano()
	c.Resources = &runtimeapi.ContainerResources{Linux: cfg.GetLinux().GetResources()}
	r.containers[c.Id] = c
	return c.Id, nil
}

// StartContainer runs the program of its image.
func (r *Runtime) StartContainer(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return gone(id)
	}
	r.called("start %s/%d", c.Metadata.Name, c.Metadata.Attempt)
	if !r.fits(c) {
		return errBeyondPod
	}
	p := r.programs[c.Image.Image]
	if p.StartError != nil {
		now := time.Now().UnixNano()
		c.State, c.ExitCode, c.Reason, c.Message, c.StartedAt, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, 128,
			"StartError", p.StartError.Error(), now, now
		return p.StartError
	}
	c.State, c.StartedAt = runtimeapi.ContainerState_CONTAINER_RUNNING, time.Now().UnixNano()
	if p.ExitAfter > 0 {
		c.timer = time.AfterFunc(p.ExitAfter, func() {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.exit(c, p.ExitCode)
		})
	}
	r.tell(c, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return nil
}

// StopContainer signals, waits for the program or the timeout, and kills.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	r.mu.Lock()
	c := r.containers[id]
	if c == nil {
		r.mu.Unlock()
		return gone(id)
	}
	r.called("stop %s/%d %ds", c.Metadata.Name, c.Metadata.Attempt, timeout)
	p, grace := r.programs[c.Image.Image], time.Duration(timeout)*time.Second
	r.mu.Unlock()
	code := int32(0)
	wait := p.StopsAfter
	if wait > grace {
		wait, code = grace, 137
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.exit(c, code)
	return nil
}

// RemoveContainer forgets one.
func (r *Runtime) RemoveContainer(_ context.Context, id string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.containers[id]; c != nil {
		if c.Metadata.Name == r.keeps {
			return fmt.Errorf("%s is kept", c.Metadata.Name)
		}
		r.called("remove %s/%d", c.Metadata.Name, c.Metadata.Attempt)
		r.exit(c, 137)
	}
	delete(r.containers, id)
	return nil
}

// ContainerStatus of one.
func (r *Runtime) ContainerStatus(_ context.Context, id string, _ bool) (*runtimeapi.ContainerStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.containers[id]
	if c == nil {
		return nil, gone(id)
	}
	return &runtimeapi.ContainerStatusResponse{Status: &runtimeapi.ContainerStatus{
		Id: c.Id, Metadata: c.Metadata, State: c.State, CreatedAt: c.CreatedAt, StartedAt: c.StartedAt, FinishedAt: c.FinishedAt,
		ExitCode: c.ExitCode, Image: c.Image, ImageRef: c.ImageRef, Reason: c.Reason, Message: c.Message,
		Labels: c.Labels, Annotations: c.Annotations, LogPath: c.LogPath, Resources: c.Resources,
	}}, nil
}

// ListContainers by labels.
func (r *Runtime) ListContainers(_ context.Context, f *runtimeapi.ContainerFilter) ([]*runtimeapi.Container, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []*runtimeapi.Container
	for _, c := range r.containers {
		if matches(c.Labels, f.GetLabelSelector()) {
			out = append(out, &runtimeapi.Container{Id: c.Id, PodSandboxId: c.sandbox, Metadata: c.Metadata, State: c.State,
				CreatedAt: c.CreatedAt, Labels: c.Labels, Annotations: c.Annotations})
		}
	}
	return out, nil
}

// ImageFsInfo tells of no file system.
func (r *Runtime) ImageFsInfo(context.Context) (*runtimeapi.ImageFsInfoResponse, error) {
	return &runtimeapi.ImageFsInfoResponse{}, nil
}

// ListPodSandboxStats is of runtimes that know more.
func (r *Runtime) ListPodSandboxStats(context.Context, *runtimeapi.PodSandboxStatsFilter) ([]*runtimeapi.PodSandboxStats, error) {
	return nil, nil
}

// ListContainerStats has none.
func (r *Runtime) ListContainerStats(context.Context, *runtimeapi.ContainerStatsFilter) ([]*runtimeapi.ContainerStats, error) {
	return nil, nil
}

// ImageStatus knows the images of the programs.
func (r *Runtime) ImageStatus(_ context.Context, spec *runtimeapi.ImageSpec, _ bool) (*runtimeapi.ImageStatusResponse, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.programs[spec.Image]; !ok || r.pullErrors[spec.Image] != nil {
		return &runtimeapi.ImageStatusResponse{}, nil
	}
	return &runtimeapi.ImageStatusResponse{Image: &runtimeapi.Image{Id: "sha256:" + spec.Image, Size: 1}}, nil
}

// PullImage fails as FailPull says.
func (r *Runtime) PullImage(
	_ context.Context,
	spec *runtimeapi.ImageSpec,
	_ *runtimeapi.AuthConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.called("pull %s", spec.Image)
	if err := r.pullErrors[spec.Image]; err != nil {
		return "", err
	}
	return "sha256:" + spec.Image, nil
}

// ListImages has none.
func (r *Runtime) ListImages(context.Context, *runtimeapi.ImageFilter) ([]*runtimeapi.Image, error) {
	return nil, nil
}
