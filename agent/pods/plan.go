package pods

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// reasonCrashLoop is what a container waits for between two incarnations.
const reasonCrashLoop = "CrashLoopBackOff"

// graceMinSeconds is the least time a container gets, whatever was asked.
const graceMinSeconds = 2

// view is everything a plan depends on.
type view struct {
	pod *corev1.Pod
	// gone: the API object was deleted.
	gone    bool
	runtime *observed.Pod
	now     time.Time
	// unwanted: the node needs the room of a pod that has finished.
	unwanted bool
	// rejected: the pod failed as a whole.
	rejected *status.Rejection
	// prepared: drivers have prepared claims for the pod.
	prepared bool
	// refused: nothing of the pod may start, and at a time it fails for that.
	refused refusal
	// started and failed are the probes' verdicts by container id.
	started func(id string) bool
	failed  func(id string) probes.Kind
	// crashes are the back-offs of containers by name.
	crashes map[string]*backoff.Backoff
	// startFailed is when the last start of a container failed, for
	// incarnations that have no end of their own.
	startFailed map[string]time.Time
	// retryAt holds containers back whose start failed; podRetryAt the sandbox.
	retryAt    map[string]time.Time
	podRetryAt time.Time
	// actuated is what the pod has; pod.Spec is what it was allocated, pending why that is not what its user wants,
	// and generation that of the user's wish it was allocated for.
	actuated actuated
	// removed are the last incarnations of containers that were removed because all start again.
	removed    map[string]*observed.Container
	pending    *status.Pending
	generation int64
}

// kind of a step.
type kind int

const (
	stay      kind = iota // nothing to do before wait
	create                // volumes and a new sandbox
	start                 // start containers, in order
	resize                // change limits of what runs
	kill                  // stop containers
	reset                 // remove containers, so that all start again
	stop                  // stop the sandboxes
	unprepare             // give back what drivers have prepared
	sweep                 // take everything off the node
	remove                // take everything off the node and the API
)

// step is what to do next.
type step struct {
	kind   kind
	start  []*corev1.Container
	resize []change
	kill   []victim
	// graceSeconds for kill.
	graceSeconds int64
	// wait is the longest time until the next look; 0 means no limit.
	wait time.Duration
	// waiting are containers in back-off.
	waiting map[string]status.Waiting
	// restartsAll: kill and reset are because all containers start again.
	restartsAll bool
	// over: no container runs, and none will.
	over bool
	// ended: nothing of the pod is left but its files, and nothing will be.
	ended bool
	// rejected is view.rejected, or what the plan found.
	rejected *status.Rejection
}

// victim is a container to stop.
type victim struct {
	container *observed.Container
	message   string // of the Killing event
	grace     int64  // seconds
	sidecar   bool
	abrupt    bool // without its hook
	// why names the probe that failed, or is empty.
	why probes.Kind
}

// plan is the next step of a pod. It does no I/O and changes nothing.
func plan(v view) step {
	s := step{waiting: map[string]status.Waiting{}, rejected: v.rejected}
	if s.rejected == nil {
		s.rejected = v.deadline(&s)
	}
	switch {
	case v.gone || v.pod.DeletionTimestamp != nil:
		v.takeDown(&s)
		if s.kind == stay {
			s.kind = remove
		}
	case s.rejected != nil || finished(v.pod):
		v.takeDown(&s)
		if s.kind == stay && v.disposable() && !v.runtime.Empty() {
			s.kind = sweep
		}
	case v.refused.why != nil:
		v.refuse(&s)
	default:
		v.run(&s)
	}
	return s
}

// deadline rejects a pod that was active too long.
func (v view) deadline(s *step) *status.Rejection {
	limit, since := v.pod.Spec.ActiveDeadlineSeconds, v.pod.Status.StartTime
	if limit == nil || since == nil || finished(v.pod) {
		return nil
	}
	left := since.Add(time.Duration(*limit) * time.Second).Sub(v.now)
	if left > 0 {
		s.soon(left)
		return nil
	}
	return &status.Rejection{Reason: events.DeadlineExceeded, Message: "Pod was active on the node longer than the specified deadline"}
}

// refuse fails the pod when it is time; until then every container says why it waits.
func (v view) refuse(s *step) {
	if left := v.refused.at.Sub(v.now); left > 0 {
		for _, c := range v.containers() {
			s.waiting[c.Name] = status.Waiting{Reason: v.refused.why.Reason, Message: v.refused.why.Message}
		}
		s.soon(left)
		return
	}
	s.rejected = v.refused.why
	v.takeDown(s)
}

// soon shortens the wait.
func (s *step) soon(d time.Duration) {
	if s.wait == 0 || d < s.wait {
		s.wait = max(d, time.Millisecond)
	}
}

// takeDown stops what runs, then the sandboxes, and has drivers end what they prepared; after that the pod has ended.
func (v view) takeDown(s *step) {
	for _, c := range v.runtime.Running() {
		name := c.ContainerName()
		s.kill = append(s.kill, victim{container: c, message: "Stopping container " + name, grace: v.grace(), sidecar: v.isSidecar(name)})
	}
	s.graceSeconds, s.over = v.grace(), len(s.kill) == 0
	switch {
	case len(s.kill) > 0:
		s.kind = kill
	case v.anyReadySandbox():
		s.kind = stop
	case v.prepared:
		s.kind = unprepare
	default:
		s.ended = true
	}
}

func (v view) anyReadySandbox() bool {
	for _, s := range v.runtime.Sandboxes {
		if s.State == 0 {
			return true
		}
	}
	return false
}

// grace is the time in seconds the pod's containers have to end by themselves.
func (v view) grace() int64 {
	g := int64(corev1.DefaultTerminationGracePeriodSeconds)
	if spec := v.pod.Spec.TerminationGracePeriodSeconds; spec != nil {
		g = *spec
	}
	if deletion := v.pod.DeletionGracePeriodSeconds; deletion != nil {
		g = *deletion
	}
	if v.rejected != nil && v.rejected.GraceSeconds != nil {
		g = min(g, *v.rejected.GraceSeconds)
	}
	return max(g, graceMinSeconds)
}

func (v view) isSidecar(name string) bool {
	for i := range v.pod.Spec.InitContainers {
		if c := &v.pod.Spec.InitContainers[i]; c.Name == name {
			return status.IsSidecar(c)
		}
	}
	return false
}

// run brings a living pod forward.
func (v view) run(s *step) {
	if v.restartAll(s) {
		return
	}
	if v.complete() {
		v.takeDown(s)
		return
	}
	if v.runtime.ReadySandbox() == nil {
		v.replaceSandbox(s)
		return
	}
	if v.restartUnhealthy(s) || v.resize(s) {
		return
	}
	for i := range v.pod.Spec.EphemeralContainers { // they wait for nobody
		v.startIfDue(s, status.Ephemeral(v.pod, i))
	}
	if !v.initialise(s) {
		return
	}
	for i := range v.pod.Spec.Containers {
		v.startIfDue(s, &v.pod.Spec.Containers[i])
	}
}

func (v view) startIfDue(s *step, c *corev1.Container) {
	if v.wantsStart(c) && v.due(s, c) {
		s.kind, s.start = start, append(s.start, c)
	}
}

// replaceSandbox removes what is left in a dead sandbox and makes a new one.
func (v view) replaceSandbox(s *step) {
	for _, c := range v.runtime.Running() {
		s.kill = append(s.kill, victim{container: c, message: "Pod sandbox changed, it will be killed and re-created.", grace: graceMinSeconds})
	}
	switch {
	case len(s.kill) > 0:
		s.kind, s.graceSeconds = kill, graceMinSeconds
	case v.now.Before(v.podRetryAt):
		s.soon(v.podRetryAt.Sub(v.now))
	default:
		s.kind = create
	}
}

// inSandbox is the latest incarnation of a container if it lives in the present
// sandbox, or nil.
func (v view) inSandbox(name string) *observed.Container {
	c, sandbox := v.runtime.Latest(name), v.runtime.Sandbox()
	if c == nil || sandbox == nil || c.SandboxID != sandbox.Id {
		return nil
	}
	return c
}

// complete: policy lets no main container run again, or an init container
// failed for good.
func (v view) complete() bool {
	for i := range v.pod.Spec.InitContainers {
		c := v.inSandbox(v.pod.Spec.InitContainers[i].Name)
		if c != nil && c.Exited() && c.ExitCode != 0 && !v.isSidecar(c.ContainerName()) &&
			!status.MayRestart(v.pod, c.ContainerName(), c.ExitCode) {
			return true
		}
	}
	for i := range v.pod.Spec.Containers {
		if !v.over(v.pod.Spec.Containers[i].Name) {
			return false
		}
	}
	return true
}

// over: the container ended and may not be started again.
func (v view) over(name string) bool {
	if c := v.runtime.Latest(name); c != nil {
		return c.Exited() && !v.stoppedForResize(name) && !status.MayRestart(v.pod, name, c.ExitCode)
	}
	code, ran := status.LastExit(v.pod, name)
	return ran && !v.wasRemoved(name) && !status.MayRestart(v.pod, name, code)
}

// restartUnhealthy stops containers that a probe condemned or whose image changed.
func (v view) restartUnhealthy(s *step) bool {
	for _, c := range v.containers() {
		run := v.inSandbox(c.Name)
		if run == nil || !run.Running() {
			continue
		}
		victim := victim{container: run, grace: v.grace()}
		if probe := v.failed(run.Id); probe != "" {
			victim.why, victim.message = probe, fmt.Sprintf("Container %s failed %s probe, will be restarted", c.Name, lower(probe))
			victim.grace = probeGrace(c, probe, victim.grace)
		} else if hash := run.Annotations[observed.AnnotationHash]; hash != "" && hash != podconfig.Hash(c) {
			victim.message = fmt.Sprintf("Container %s definition changed, will be restarted", c.Name)
		} else {
			continue
		}
		s.kill = append(s.kill, victim)
	}
	if len(s.kill) > 0 {
		s.kind, s.graceSeconds = kill, v.grace()
	}
	return len(s.kill) > 0
}

func (v view) containers() []*corev1.Container {
	var out []*corev1.Container
	for i := range v.pod.Spec.InitContainers {
		out = append(out, &v.pod.Spec.InitContainers[i])
	}
	for i := range v.pod.Spec.Containers {
		out = append(out, &v.pod.Spec.Containers[i])
	}
	for i := range v.pod.Spec.EphemeralContainers {
		out = append(out, status.Ephemeral(v.pod, i))
	}
	return out
}

func lower(k probes.Kind) string {
	if k == probes.Startup {
		return "startup"
	}
	return "liveness"
}

func probeGrace(c *corev1.Container, k probes.Kind, grace int64) int64 {
	p := c.LivenessProbe
	if k == probes.Startup {
		p = c.StartupProbe
	}
	if p != nil && p.TerminationGracePeriodSeconds != nil {
		return max(*p.TerminationGracePeriodSeconds, graceMinSeconds)
	}
	return grace
}

// initialise reports whether the main containers may run. Init containers run
// one after the other; a sidecar counts as done once it has started.
func (v view) initialise(s *step) bool {
	done := v.anyMainStarted()
	for i := range v.pod.Spec.InitContainers {
		c := &v.pod.Spec.InitContainers[i]
		sidecar := status.IsSidecar(c)
		run := v.inSandbox(c.Name)
		switch {
		case done && !sidecar:
			continue
		case run != nil && run.Running():
			if !done && !(sidecar && v.started(run.Id)) {
				return false
			}
			continue
		case run != nil && run.Exited() && run.ExitCode == 0 && !sidecar:
			continue
		}
		if v.due(s, c) {
			s.kind, s.start = start, append(s.start, c)
		}
		if !done {
			return false
		}
	}
	return true
}

func (v view) anyMainStarted() bool {
	for i := range v.pod.Spec.Containers {
		if v.inSandbox(v.pod.Spec.Containers[i].Name) != nil {
			return true
		}
	}
	return false
}

func (v view) wantsStart(c *corev1.Container) bool {
	if run := v.inSandbox(c.Name); run != nil && run.Running() {
		return false
	}
	return !v.over(c.Name)
}

// due reports whether c may start now; otherwise it notes how long to wait,
// and, in a crash loop, why.
func (v view) due(s *step, c *corev1.Container) bool {
	if at := v.retryAt[c.Name]; v.now.Before(at) {
		s.soon(at.Sub(v.now))
		return false
	}
	b, failed := v.crashes[c.Name], v.ended(c.Name)
	if b == nil || failed.IsZero() || v.stoppedForResize(c.Name) {
		return true
	}
	left := b.Remaining(failed, v.now)
	if left == 0 {
		return true
	}
	s.soon(left)
	s.waiting[c.Name] = status.Waiting{
		Reason: reasonCrashLoop,
		Message: fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)",
			b.Delay(), c.Name, v.pod.Name, v.pod.Namespace, v.pod.UID),
	}
	return false
}

func (v view) stoppedForResize(name string) bool {
	c := v.runtime.Latest(name)
	return c != nil && v.actuated.restarted[name] == c.Id
}

// ended is when the last incarnation did, or the zero time.
func (v view) ended(name string) time.Time {
	at, c := v.startFailed[name], v.runtime.Latest(name)
	switch {
	case c == nil:
	case c.Exited() && c.FinishedAt > 0 && time.Unix(0, c.FinishedAt).After(at):
		return time.Unix(0, c.FinishedAt)
	case !c.Exited() && time.Unix(0, c.CreatedAt).After(at):
		return time.Time{} // another one is being started
	}
	return at
}
