package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/agent/net/network/bandwidth"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

// sandbox is one pod. mu guards record; gone is closed when the shim has ended.
type sandbox struct {
	id     string
	dir    string
	config *runtimeapi.PodSandboxConfig
	shim   *shim.Client
	pod    *cgroup.Group
	leaf   *cgroup.Group
	gone   chan struct{}
	ended  sync.Once  // closes gone
	stop   sync.Mutex // one StopPodSandbox at a time

	mu     sync.Mutex
	record sandboxRecord
}

// RunPodSandbox makes the pod's namespaces, network, cgroup and shim. What a failure leaves behind is removed.
func (r *Runtime) RunPodSandbox(ctx context.Context, config *runtimeapi.PodSandboxConfig, handler string) (string, error) {
	if err := validateSandbox(config, handler); err != nil {
		return "", err
	}
	if r.ctx.Err() != nil {
		return "", coded(ErrClosed)
	}
	s, err := r.newSandbox(config, handler)
	if err != nil {
		return "", coded(err)
	}
	if err := r.runSandbox(ctx, s); err != nil {
		r.config.Logger.Debug("sandbox failed", "sandbox", s.id, "err", err)
		return "", coded(errors.Join(err, r.destroySandbox(s)))
	}
	r.addSandbox(s)
	r.background.Go(func() { r.watch(s) })
	r.announceSandbox(s, runtimeapi.ContainerEventType_CONTAINER_STARTED_EVENT)
	return s.id, nil
}

func namespaces(config *runtimeapi.PodSandboxConfig) *runtimeapi.NamespaceOption {
	return config.GetLinux().GetSecurityContext().GetNamespaceOptions()
}

func hostNetwork(config *runtimeapi.PodSandboxConfig) bool {
	return namespaces(config).GetNetwork() == runtimeapi.NamespaceMode_NODE
}

func (r *Runtime) newSandbox(config *runtimeapi.PodSandboxConfig, handler string) (*sandbox, error) {
	encoded, err := proto.Marshal(config)
	if err != nil {
		return nil, err
	}
	id := newID(sandboxIDBytes)
	record := sandboxRecord{
		ID: id, Config: encoded, Handler: handler, CreatedAt: time.Now(), CgroupPath: r.podCgroup(id, config),
	}
	return r.assembleSandbox(record, config)
}

// assembleSandbox makes the object of a record, new or read back.
func (r *Runtime) assembleSandbox(record sandboxRecord, config *runtimeapi.PodSandboxConfig) (*sandbox, error) {
	dir := filepath.Join(r.sandboxesDir(), record.ID)
	pod, err := cgroup.Open(record.CgroupPath)
	if err != nil {
		return nil, err
	}
	leaf, err := cgroup.Open(record.CgroupPath + "/sandbox")
	if err != nil {
		return nil, err
	}
	return &sandbox{
		id: record.ID, dir: dir, config: config, record: record, pod: pod, leaf: leaf,
		shim: shim.NewClient(dir), gone: make(chan struct{}),
	}, nil
}

func (r *Runtime) runSandbox(ctx context.Context, s *sandbox) (err error) {
	if s.record.Labels, err = r.selinux.Pod(s.config.GetLinux().GetSecurityContext()); err != nil {
		return err
	}
	if err := private.Folder(s.dir); err != nil {
		return err
	}
	if err := writeRecord(s.dir, s.record); err != nil {
		return err
	}
	if err := r.createPodCgroup(s); err != nil {
		return err
	}
	if err := s.leaf.Create(cgroup.Limits{}); err != nil {
		return err
	}
	if err := s.mountShm(); err != nil {
		return err
	}
	if err := s.writeShimConfig(); err != nil {
		return err
	}
	started, err := r.startShim(s)
	if err != nil {
		return err
	}
	s.record.ShimPID = started.pid
	if err := r.finishSandbox(ctx, s, started); err != nil {
		// It may not be in the pod's cgroup yet: only we know it.
		started.kill()
		<-s.gone
		return err
	}
	return nil
}

// finishSandbox moves the shim into its group of v2 meanwhile, which waits for an RCU grace period.
func (r *Runtime) finishSandbox(ctx context.Context, s *sandbox, started *startedShim) error {
	defer started.ready.Close()
	moved := make(chan error, 1)
	go func() { moved <- s.leaf.Adopt(started.pid) }()
	if err := cmp.Or(r.furnishSandbox(ctx, s, started), <-moved); err != nil {
		return err
	}
	s.record.Ready = true
	return writeRecord(s.dir, s.record)
}

// furnishSandbox gives the pod its network and files.
func (r *Runtime) furnishSandbox(ctx context.Context, s *sandbox, started *startedShim) error {
	s.record.HolderPID = started.pid
	if usersOf(s.config) != nil {
		var err error
		if s.record.HolderPID, err = s.await(ctx, started); err != nil {
			return err
		}
	}
	connected := r.connectSandbox(ctx, s) // meanwhile the shim and its pause process start
	// A shim that could not prepare may be gone before it is connected: its own reason
	// says more than that there is no such process.
	if _, err := s.await(ctx, started); err != nil {
		return err
	}
	if connected != nil {
		return connected
	}
	return s.writeFiles()
}

func (r *Runtime) connectSandbox(ctx context.Context, s *sandbox) error {
	if hostNetwork(s.config) {
		return nil
	}
	ports, err := hostPorts(s.config)
	limits, failed := bandwidth.Of(s.config.GetAnnotations())
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	pod := network.Pod{PID: s.record.HolderPID, ID: s.id, HostPorts: ports, Bandwidth: limits}
	if ask := r.admit.Load(); ask != nil {
		pod.Admit = func(endpoint network.Endpoint) error { return (*ask)(ctx, s.config, endpoint.Addresses()) }
	}
	s.record.Endpoint, err = r.network.Attach(pod)
	return err
}

// mountShm gives the pod's containers their common /dev/shm.
func (s *sandbox) mountShm() error {
	if namespaces(s.config).GetIpc() == runtimeapi.NamespaceMode_NODE {
		return nil
	}
	dir := s.shmDir()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	options := boot.Labelled("mode=1777,size=64m", s.record.Labels.Files)
	if err := unix.Mount("shm", dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, options); err != nil {
		return fmt.Errorf("mount shared memory: %w", err)
	}
	return nil
}

func (s *sandbox) shmDir() string {
	if namespaces(s.config).GetIpc() == runtimeapi.NamespaceMode_NODE {
		return "/dev/shm"
	}
	return filepath.Join(s.dir, "shm")
}

// StopPodSandbox ends the pod's containers and gives its network back. A sandbox that is gone is no error.
func (r *Runtime) StopPodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil // CRI: stopping is idempotent
	}
	return coded(r.stopSandbox(ctx, s))
}

func (r *Runtime) stopSandbox(ctx context.Context, s *sandbox) error {
	s.stop.Lock()
	defer s.stop.Unlock()
	for _, c := range r.containersOf(s.id) {
		if err := r.kill(ctx, c); err != nil {
			return err
		}
	}
	if err := s.endShim(ctx); err != nil {
		return err
	}
	wasReady, err := r.retire(s)
	if wasReady {
		r.announceSandbox(s, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
	return err
}

// errUnrecorded says that a sandbox is over, but not on the disk.
var errUnrecorded = errors.New("cannot record that the pod has ended")

// retire gives the network back and records that the sandbox is over.
func (r *Runtime) retire(s *sandbox) (wasReady bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := r.disconnect(&s.record); err != nil {
		return false, err
	}
	wasReady = s.record.Ready
	s.record.Ready = false
	if err := writeRecord(s.dir, s.record); err != nil {
		return wasReady, fmt.Errorf("%w: %w", errUnrecorded, err)
	}
	return wasReady, nil
}

func (r *Runtime) disconnect(record *sandboxRecord) error {
	if record.Endpoint.HostInterface == "" {
		return nil
	}
	if err := r.network.Detach(record.Endpoint); err != nil {
		return err
	}
	record.Endpoint = network.Endpoint{}
	return nil
}

// endShim asks, then kills.
func (s *sandbox) endShim(ctx context.Context) error {
	select {
	case <-s.gone:
		return nil
	default:
	}
	if s.shim.Shutdown(ctx) != nil {
		if err := s.leaf.Kill(); err != nil {
			return err
		}
	}
	select {
	case <-s.gone:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// RemovePodSandbox removes the sandbox and its containers. One that is gone is no error.
func (r *Runtime) RemovePodSandbox(ctx context.Context, id string) error {
	s, err := r.sandbox(id)
	if err != nil {
		return nil // CRI: removing is idempotent
	}
	// On a full disk a removal may be what makes room, and it needs no record.
	if err := r.stopSandbox(ctx, s); err != nil && !errors.Is(err, errUnrecorded) {
		return coded(err)
	}
	for _, c := range r.containersOf(id) {
		if err := r.removeContainer(ctx, c); err != nil {
			return coded(err)
		}
	}
	if err := r.destroySandbox(s); err != nil {
		return coded(err)
	}
	r.announceSandbox(s, runtimeapi.ContainerEventType_CONTAINER_DELETED_EVENT)
	r.dropSandbox(id)
	return nil
}

// destroySandbox removes everything a sandbox may have, in whatever state it is.
func (r *Runtime) destroySandbox(s *sandbox) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	errs := []error{s.pod.Kill(), r.disconnect(&s.record)}
	errs = append(errs, unmountShm(s.dir), s.leaf.Destroy(), r.destroyPodCgroup(s))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	r.selinux.Release(s.record.Labels.Files)
	s.record.Labels = selinux.Labels{}
	return os.RemoveAll(s.dir)
}

func (s *sandbox) labels() selinux.Labels {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.record.Labels
}

// isMountPoint compares devices: a tmpfs below a directory is on another one.
func isMountPoint(dir, parent string) bool {
	var a, b unix.Stat_t
	return unix.Lstat(dir, &a) == nil && unix.Lstat(parent, &b) == nil && a.Dev != b.Dev
}

func (s *sandbox) closeGone() { s.ended.Do(func() { close(s.gone) }) }
