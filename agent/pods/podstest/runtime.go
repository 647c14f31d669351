package podstest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	grpcstatus "google.golang.org/grpc/status"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	utilexec "k8s.io/utils/exec"

	"github.com/setpoint-io/setpoint/agent/runtime/cri"
)

// Program is what the containers of an image do.
type Program struct {
	// ExitAfter ends the process by itself; 0 means never.
	ExitAfter time.Duration
	// ExitCode is the code of its own end.
	ExitCode int32
	// StopsAfter is how long it takes to end on a stop signal; more than the
	// grace period means it is killed, with code 137.
	StopsAfter time.Duration
	// StartError makes StartContainer fail.
	StartError error
}

// Runtime is the fake. Use New. Methods of the interface that are not
// implemented here panic: the agent is not expected to call them.
type Runtime struct {
	cri.Runtime

	mu         sync.Mutex
	programs   map[string]Program
	pullErrors map[string]error
	execs      map[string]func() error // by the command, joined
	sandboxes  map[string]*runtimeapi.PodSandboxStatus
	containers map[string]*container
	calls      []string
	handlers   []string
	events     []chan *runtimeapi.ContainerEventResponse
	next       int
	noEvents   bool
	listError  error
	keeps      string // the container that cannot be removed

	limits      map[string]*runtimeapi.LinuxContainerResources // of sandboxes
	memory      map[string]uint64                              // in bytes, by the container's name
	updateError error
}

type container struct {
	runtimeapi.ContainerStatus
	sandbox string
	config  *runtimeapi.ContainerConfig
	timer   *time.Timer
}

// New returns a runtime that knows the images in programs.
func New(programs map[string]Program) *Runtime {
	return &Runtime{programs: programs, pullErrors: map[string]error{}, execs: map[string]func() error{},
		limits: map[string]*runtimeapi.LinuxContainerResources{}, memory: map[string]uint64{},
		sandboxes: map[string]*runtimeapi.PodSandboxStatus{}, containers: map[string]*container{}}
}

// WithoutEvents makes the event stream unimplemented, as old runtimes have it.
func (r *Runtime) WithoutEvents() { r.noEvents = true }

// FailLists makes lists of sandboxes fail with err, or succeed when err is nil.
func (r *Runtime) FailLists(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listError = err
}

// Keep has the removal of a container fail, until it is called with another name.
func (r *Runtime) Keep(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.keeps = name
}

// FailPull makes pulls of image fail with err, or succeed when err is nil.
func (r *Runtime) FailPull(image string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pullErrors[image] = err
}

// OnExec decides the result of a command.
func (r *Runtime) OnExec(cmd string, f func() error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.execs[cmd] = f
}

// Calls lists the calls that changed something, such as "start web/0".
func (r *Runtime) Calls() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.calls)
}

// Config is the configuration the named container was last created with.
func (r *Runtime) Config(name string) *runtimeapi.ContainerConfig {
	r.mu.Lock()
	defer r.mu.Unlock()
	var newest *container
	for _, c := range r.containers {
		if c.Metadata.Name == name && (newest == nil || c.Metadata.Attempt > newest.Metadata.Attempt) {
			newest = c
		}
	}
	if newest == nil {
		return nil
	}
	return newest.config
}

// Crash ends the running container of that name with code.
func (r *Runtime) Crash(name string, code int32) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.Metadata.Name == name && c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			r.exit(c, code)
		}
	}
}

// Reboot ends everything at once, as a power cut does.
func (r *Runtime) Reboot() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers {
		if c.State == runtimeapi.ContainerState_CONTAINER_RUNNING {
			r.exit(c, 255)
		}
	}
	for _, s := range r.sandboxes {
		s.State = runtimeapi.PodSandboxState_SANDBOX_NOTREADY
	}
}

// Left counts the sandboxes and containers that exist.
func (r *Runtime) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sandboxes) + len(r.containers)
}

func (r *Runtime) id(kind string) string {
	r.next++
	return fmt.Sprintf("%s-%d", kind, r.next)
}

func (r *Runtime) called(format string, args ...any) {
	r.calls = append(r.calls, fmt.Sprintf(format, args...))
}

func gone(id string) error { return grpcstatus.Errorf(codes.NotFound, "%s not found", id) }

// exit ends c and tells. r.mu is held.
func (r *Runtime) exit(c *container, code int32) {
	if c.State != runtimeapi.ContainerState_CONTAINER_RUNNING {
		return
	}
	c.State, c.ExitCode, c.FinishedAt = runtimeapi.ContainerState_CONTAINER_EXITED, code, time.Now().UnixNano()
	if c.timer != nil {
		c.timer.Stop()
	}
	r.tell(c, runtimeapi.ContainerEventType_CONTAINER_STOPPED_EVENT)
}

// tell never blocks: a full queue loses events, as the interface allows.
func (r *Runtime) tell(c *container, kind runtimeapi.ContainerEventType) {
	e := &runtimeapi.ContainerEventResponse{ContainerId: c.Id, ContainerEventType: kind, PodSandboxStatus: r.sandboxes[c.sandbox]}
	for _, ch := range r.events {
		select {
		case ch <- e:
		default:
		}
	}
}

// GetContainerEvents sends events until ctx ends.
func (r *Runtime) GetContainerEvents(
	ctx context.Context,
	ch chan *runtimeapi.ContainerEventResponse,
	_ func(runtimeapi.RuntimeService_GetContainerEventsClient),
) error {
	if r.noEvents {
		return grpcstatus.Error(codes.Unimplemented, "no events")
	}
	r.mu.Lock()
	r.events = append(r.events, ch)
	r.mu.Unlock()
	<-ctx.Done()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = slices.DeleteFunc(r.events, func(c chan *runtimeapi.ContainerEventResponse) bool { return c == ch })
	return ctx.Err()
}

// ExecSync runs what OnExec set; unknown commands succeed.
func (r *Runtime) ExecSync(_ context.Context, _ string, cmd []string, _ time.Duration) (stdout, stderr []byte, err error) {
	r.mu.Lock()
	f := r.execs[strings.Join(cmd, " ")]
	r.called("exec %s", strings.Join(cmd, " "))
	r.mu.Unlock()
	if f == nil {
		return nil, nil, nil
	}
	return nil, nil, f()
}

// Exit is the error of a command that ended with code.
func Exit(code int) error {
	return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
}
