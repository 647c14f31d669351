package embedded

import (
	"errors"
	"io/fs"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

// reconnectDelay separates attempts to watch a shim that is alive but cut us off for lagging.
const reconnectDelay = 10 * time.Millisecond

// watch follows one sandbox's shim until that ends or the runtime is closed.
func (r *Runtime) watch(s *sandbox) {
	for r.ctx.Err() == nil {
		err := s.shim.Watch(r.ctx, func() {}, func(state shim.State) { r.observe(state) })
		if r.ctx.Err() != nil {
			return
		}
		if !s.shim.Alive(r.ctx) {
			r.shimGone(s)
			return
		}
		r.config.Logger.Debug("watching shim again", "sandbox", s.id, "err", err)
		time.Sleep(reconnectDelay)
	}
}

// observe takes what the shim says about a container. A start that this process does not know of was made by its
// predecessor just before it ended.
func (r *Runtime) observe(state shim.State) {
	c, err := r.container(state.ID)
	if err != nil {
		return // removed meanwhile
	}
	c.mu.Lock()
	if c.record.StartedAt.IsZero() && !state.StartedAt.IsZero() {
		if err := c.recordStart(&state); err != nil {
			r.config.Logger.Error("record start", "container", c.id, "err", err)
		}
	}
	c.mu.Unlock()
	if state.Exit != nil {
		r.exited(c, state.Exit)
	}
}

// errShimEnded is why a call to a shim failed that is no more.
var errShimEnded = errors.New("the pod's shim has ended")

// judge says what an error of a call to a shim means. If the shim has ended, the sandbox is over when this returns, so that nobody tries
// the same again in it.
func (r *Runtime) judge(s *sandbox, err error) error {
	if err == nil || !s.shim.HasEnded(r.ctx, err) {
		return err
	}
	r.shimGone(s)
	return errShimEnded
}

// shimGone ends a sandbox whose shim ended, and then judges its containers: the kernel killed what still ran. Whoever sees the end
// of a container would start it again in a sandbox that seems to be ready.
func (r *Runtime) shimGone(s *sandbox) {
	s.mu.Lock()
	wasReady := s.record.Ready
	s.record.Ready = false
	err := writeRecord(s.dir, s.record)
	s.mu.Unlock()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.config.Logger.Error("record sandbox", "sandbox", s.id, "err", err)
	}
	for _, c := range r.containersOf(s.id) {
		if !c.isRunning() {
			continue
		}
		if err := c.group.Kill(); err != nil {
			r.config.Logger.Error("kill container without shim", "container", c.id, "err", err)
		}
		r.exited(c, lostExit(c.dir))
	}
	s.closeGone()
	if wasReady {
		r.announceSandbox(s, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
	}
}

// lostExit prefers what the shim managed to record.
func lostExit(dir string) *shim.Exit {
	if exit, err := shim.ReadExit(dir); err == nil {
		return exit
	}
	return &shim.Exit{Code: codeUnknown, FinishedAt: time.Now(), Reason: reasonUnknown,
		Message: "the pod's shim ended without recording the container's exit"}
}
