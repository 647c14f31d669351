package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cdi"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

// startTimeMax bounds one container start.
const startTimeMax = 2 * time.Minute

// Exit codes and reasons that kubectl users know from other runtimes.
const (
	codeUnknown      = 137
	reasonUnknown    = "Unknown"
	reasonStartError = "StartError"
	reasonOOMKilled  = "OOMKilled"
	reasonCompleted  = "Completed"
	reasonError      = "Error"
)

// container is one container. mu guards record; done is closed when it has exited or can never start.
type container struct {
	id      string
	dir     string
	sandbox *sandbox
	config  *runtimeapi.ContainerConfig
	group   *cgroup.Group
	done    chan struct{}

	mu        sync.Mutex
	record    containerRecord
	resources *runtimeapi.LinuxContainerResources
	starting  bool
}

// CreateContainer prepares a container; nothing runs yet.
func (r *Runtime) CreateContainer(
	_ context.Context,
	sandboxID string,
	config *runtimeapi.ContainerConfig,
	_ *runtimeapi.PodSandboxConfig,
) (string, error) {
	s, err := r.sandbox(sandboxID)
	if err != nil {
		return "", err
	}
	if !s.ready() {
		return "", status.Errorf(codes.FailedPrecondition, "sandbox %q is not ready", sandboxID)
	}
	if err := validateContainer(config); err != nil {
		return "", err
	}
	if config, err = cdi.Resolve(config, r.config.CDIDirs); err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	c, err := r.newContainer(s, config)
	if err != nil {
		return "", coded(err)
	}
	r.addContainer(c)
	r.announce(c, runtimeapi.ContainerEventType_CONTAINER_CREATED_EVENT)
	return c.id, nil
}

func (r *Runtime) newContainer(s *sandbox, config *runtimeapi.ContainerConfig) (*container, error) {
	image, err := r.images.Get(config.GetImage().GetImage())
	if err != nil {
		return nil, err
	}
	encoded, err := proto.Marshal(config)
	if err != nil {
		return nil, err
	}
	process, err := r.processOf(s, config, image)
	if err != nil {
		return nil, err
	}
	labels, err := r.selinux.Container(s.labels(), config.GetLinux().GetSecurityContext())
	if err != nil {
		return nil, err
	}
	process.SELinux = labels.Process
	volumes, err := r.volumesOf(config)
	if err != nil {
		return nil, err
	}
	record := containerRecord{
		ID: newID(containerIDBytes), Volumes: volumes, SandboxID: s.id, Config: encoded, ImageID: image.ID, Layers: image.Layers,
		CreatedAt: time.Now(), StopSignal: stopSignalOf(config, image), Process: *process, FileLabel: labels.Files,
	}
	record.CgroupPath = s.record.CgroupPath + "/" + record.ID
	if config.GetLogPath() != "" && s.config.GetLogDirectory() != "" {
		record.LogPath = filepath.Join(s.config.GetLogDirectory(), config.GetLogPath())
	}
	c, err := r.assembleContainer(s, record, config)
	if err != nil {
		return nil, err
	}
	for _, name := range []string{"upper", "work", "rootfs", imageMountName} {
		if err := os.MkdirAll(filepath.Join(c.dir, name), 0o755); err != nil {
			return nil, errors.Join(err, os.RemoveAll(c.dir))
		}
	}
	if err := writeRecord(c.dir, c.record); err != nil {
		return nil, errors.Join(err, os.RemoveAll(c.dir))
	}
	r.selinux.Hold(labels.Files)
	return c, nil
}

// volumesOf finds the images that are mounted as volumes.
func (r *Runtime) volumesOf(config *runtimeapi.ContainerConfig) (map[string][]string, error) {
	volumes := map[string][]string{}
	for _, mount := range config.GetMounts() {
		if ref := mount.GetImage().GetImage(); ref != "" {
			image, err := r.images.Get(ref)
			if err != nil {
				return nil, fmt.Errorf("image volume: %w", err)
			}
			volumes[targetOf(mount)] = image.Layers
		}
	}
	return volumes, nil
}

// stopSignalOf is the pod's choice, or the image's.
func stopSignalOf(config *runtimeapi.ContainerConfig, image images.Image) string {
	if config.GetStopSignal() == runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT {
		return image.Config.StopSignal
	}
	return strings.NewReplacer("SIGNAL_", "", "PLUS", "+", "MINUS", "-").Replace(config.GetStopSignal().String())
}

// assembleContainer makes the object of a record, new or read back.
func (r *Runtime) assembleContainer(s *sandbox, record containerRecord, config *runtimeapi.ContainerConfig) (*container, error) {
	group, err := cgroup.Open(record.CgroupPath)
	if err != nil {
		return nil, err
	}
	return &container{
		id: record.ID, dir: filepath.Join(r.containersDir(), record.ID), sandbox: s, config: config,
		group: group, done: make(chan struct{}), record: record, resources: config.GetLinux().GetResources(),
	}, nil
}

// StartContainer starts a created container. One whose command cannot run has exited with reason StartError.
func (r *Runtime) StartContainer(ctx context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	if err := c.beginStart(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeMax)
	defer cancel()
	state, err := r.launch(ctx, c)
	c.mu.Lock()
	c.starting = false
	if err == nil {
		err = c.recordStart(state)
	}
	c.mu.Unlock()
	if err = r.judge(c.sandbox, err); err != nil {
		r.failStart(c, err)
		return coded(fmt.Errorf("failed to start container %q: %w", c.config.GetMetadata().GetName(), err))
	}
	r.announce(c, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return nil
}

// recordStart notes what a later exec needs; the caller holds mu.
func (c *container) recordStart(state *shim.State) error {
	c.record.PID, c.record.StartedAt, c.record.Process.Identity = state.PID, state.StartedAt, state.Identity
	return writeRecord(c.dir, c.record)
}

func (c *container) beginStart() error {
	if !c.sandbox.ready() {
		return status.Errorf(codes.FailedPrecondition, "sandbox %q is not ready", c.sandbox.id)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.starting || c.state() != runtimeapi.ContainerState_CONTAINER_CREATED {
		return status.Errorf(codes.FailedPrecondition, "container %q is not in created state", c.id)
	}
	c.starting = true
	return nil
}

func (r *Runtime) launch(ctx context.Context, c *container) (*shim.State, error) {
	if err := c.group.Create(limitsOf(c.limits())); err != nil {
		return nil, err
	}
	if err := c.restrictDevices(); err != nil {
		return nil, err
	}
	spec, err := r.specOf(c)
	if err != nil {
		return nil, err
	}
	target, err := r.targetPID(c)
	if err != nil {
		return nil, err
	}
	return c.sandbox.shim.Start(ctx, &shim.StartRequest{
		Spec: *spec, Dir: c.dir, LogPath: c.record.LogPath, Stdin: c.config.GetStdin(), StdinOnce: c.config.GetStdinOnce(),
		NewPID: ownPID(c.sandbox.config, c.config), PodPID: podPID(c.sandbox.config, c.config), TargetPID: target,
	})
}

// targetPID is the main process of the container whose PID namespace this one wants to share (kubectl debug); 0 if none.
func (r *Runtime) targetPID(c *container) (int, error) {
	options := c.config.GetLinux().GetSecurityContext().GetNamespaceOptions()
	if options.GetPid() != runtimeapi.NamespaceMode_TARGET {
		return 0, nil
	}
	target, err := r.runningContainer(options.GetTargetId())
	if err != nil {
		return 0, fmt.Errorf("target container: %w", err)
	}
	if target.sandbox != c.sandbox {
		return 0, status.Errorf(codes.InvalidArgument, "target container %q is in another pod", target.id)
	}
	target.mu.Lock()
	defer target.mu.Unlock()
	return target.record.PID, nil
}

// failStart ends the container, and what the start may have left running: another one is made soon.
func (r *Runtime) failStart(c *container, cause error) {
	exit := &shim.Exit{Code: 128, FinishedAt: time.Now(), Reason: reasonStartError, Message: cause.Error()}
	if failed := (*shim.StartError)(nil); errors.As(cause, &failed) {
		exit.Code = failed.Code
	}
	first := r.recordExit(c, exit) // before the shim reports what is killed
	if err := c.group.Kill(); err != nil {
		r.config.Logger.Error("kill container that failed to start", "container", c.id, "err", err)
	}
	if first {
		r.announce(c, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

// exited records an exit once, whoever reports it first.
func (r *Runtime) exited(c *container, exit *shim.Exit) {
	if r.recordExit(c, exit) {
		r.announce(c, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

// recordExit tells whether it is the first of the container.
func (r *Runtime) recordExit(c *container, exit *shim.Exit) (first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.record.Exit != nil {
		return false
	}
	c.record.OOMKilled = exit.Code == codeUnknown && c.group.OOMKills() > 0
	c.record.Exit = exit
	if err := writeRecord(c.dir, c.record); err != nil {
		// The shim's own exit file still tells the next process.
		r.config.Logger.Error("record exit", "container", c.id, "err", err)
	}
	close(c.done)
	return true
}

// StopContainer sends the stop signal, waits timeout seconds, then kills.
func (r *Runtime) StopContainer(ctx context.Context, id string, timeout int64) error {
	c, err := r.container(id)
	if err != nil {
		return nil // CRI: stopping what is gone succeeds
	}
	if timeout > 0 && c.isRunning() {
		if err := c.sandbox.shim.Signal(ctx, c.id, stopSignal(c.record.StopSignal)); err == nil {
			c.waitExit(ctx, time.Duration(timeout)*time.Second)
		}
	}
	return coded(r.kill(ctx, c))
}

// kill ends the container now, with all its processes, and returns when its exit is recorded.
func (r *Runtime) kill(ctx context.Context, c *container) error {
	if !c.isRunning() {
		return nil
	}
	// The main process first: with a PID namespace of its own the kernel ends the rest at once.
	failed := c.sandbox.shim.Signal(ctx, c.id, syscall.SIGKILL)
	if failed != nil {
		r.config.Logger.Debug("kill by shim", "container", c.id, "err", failed)
	}
	if err := c.group.Kill(); err != nil {
		return err
	}
	if errors.Is(failed, shim.ErrSilent) { // it reports nothing, so the pod is over
		if err := c.sandbox.leaf.Kill(); err != nil {
			return err
		}
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *container) waitExit(ctx context.Context, limit time.Duration) {
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
	case <-ctx.Done():
	}
}

// RemoveContainer kills the container if need be and deletes what it wrote, except its log.
func (r *Runtime) RemoveContainer(ctx context.Context, id string) error {
	c, err := r.container(id)
	if err != nil {
		return nil // CRI: removing what is gone succeeds
	}
	return coded(r.removeContainer(ctx, c))
}

func (r *Runtime) removeContainer(ctx context.Context, c *container) error {
	if err := r.kill(ctx, c); err != nil {
		return err
	}
	// The process that booted it may not have ended yet.
	if err := c.group.Kill(); err != nil {
		return err
	}
	if err := c.group.Destroy(); err != nil {
		return err
	}
	if err := os.RemoveAll(c.dir); err != nil {
		return err
	}
	if r.dropContainer(c.id) {
		r.selinux.Release(c.record.FileLabel)
		r.announce(c, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	}
	return nil
}

// ReopenContainerLog follows a rotation of the container's log file.
func (r *Runtime) ReopenContainerLog(ctx context.Context, id string) error {
	c, err := r.runningContainer(id)
	if err != nil {
		return err
	}
	return coded(c.sandbox.shim.ReopenLog(ctx, id))
}

// UpdateContainerResources changes the limits of a container that has been started.
func (r *Runtime) UpdateContainerResources(_ context.Context, id string, resources *runtimeapi.ContainerResources) error {
	c, err := r.container(id)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING {
		if err := c.group.Set(limitsOf(resources.GetLinux())); err != nil {
			return coded(err)
		}
	}
	merged := mergeResources(c.resources, resources.GetLinux())
	updated := proto.CloneOf(c.config)
	if updated.Linux == nil {
		updated.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	updated.Linux.Resources = merged
	encoded, err := proto.Marshal(updated)
	if err != nil {
		return coded(err)
	}
	c.resources, c.record.Config = merged, encoded
	return coded(writeRecord(c.dir, c.record))
}

func (c *container) limits() *runtimeapi.LinuxContainerResources {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.resources
}

func (r *Runtime) runningContainer(id string) (*container, error) {
	c, err := r.container(id)
	if err != nil {
		return nil, err
	}
	if !c.isRunning() {
		return nil, status.Errorf(codes.FailedPrecondition, "container %q is not running", id)
	}
	return c, nil
}

// state is derived, never stored; the caller holds mu.
func (c *container) state() runtimeapi.ContainerState {
	switch {
	case c.record.Exit != nil:
		return runtimeapi.ContainerState_CONTAINER_EXITED
	case !c.record.StartedAt.IsZero():
		return runtimeapi.ContainerState_CONTAINER_RUNNING
	default:
		return runtimeapi.ContainerState_CONTAINER_CREATED
	}
}

func (c *container) isRunning() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.state() == runtimeapi.ContainerState_CONTAINER_RUNNING
}

func (s *sandbox) ready() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Ready
}
