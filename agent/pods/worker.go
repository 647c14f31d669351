package pods

import (
	"context"
	"log/slog"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/backoff"
	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/pods/probes"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
	"github.com/setpoint-io/setpoint/agent/volumes"
)

const (
	// lookRetry is the pause after the runtime could not be read.
	lookRetry = time.Second
	// resync is the longest time a worker sleeps: a missed wake-up heals itself.
	resync = time.Minute
	// startRetryMin and startRetryMax bound the pauses after a sandbox or a
	// container could not be created.
	startRetryMin = time.Second
	startRetryMax = 10 * time.Second
)

// worker brings one pod to what its object says. Its fields below wake belong
// to the goroutine of run; those guarded by mu are shared with its tasks.
type worker struct {
	m      *Manager
	uid    types.UID
	logger *slog.Logger
	born   time.Time
	wake   chan struct{} // holds one: more would say the same

	probes    *probes.Set
	task      *task
	tasks     sync.WaitGroup
	announced map[string]string // container -> incarnation whose back-off had its event
	judged    bool              // whether the fields of the pod were looked at
	family    string            // the warning about the node's address that had its event

	mu       sync.Mutex
	pod      *corev1.Pod
	mirror   *corev1.Pod // of a static pod: what shows it in the API; nil: nothing
	gone     bool
	removed  bool
	live     bool // a container runs
	unwanted bool // once its pod has finished, nothing of it stays
	swept    bool // of a disposable pod: its files are gone
	rejected *status.Rejection
	refused  refusal
	notes    notes
}

// notes are what a worker remembers between steps; losing them costs a pause.
type notes struct {
	waiting     map[string]status.Waiting
	crashes     map[string]*backoff.Backoff
	startFailed map[string]time.Time
	retryAt     map[string]time.Time
	retries     map[string]int
	podRetryAt  time.Time
	podRetries  int
	places      volumes.Places // nil before the first mount
	refreshed   time.Time
	stale       bool // the volumes may show what was
	actuated    actuated
	removed     map[string]*observed.Container // last incarnations, by name, removed because all containers start again
	stopped     map[string]bool                // incarnations, by id, that were stopped for that
}

func newWorker(m *Manager, pod *corev1.Pod) *worker {
	w := &worker{m: m, uid: pod.UID, born: time.Now(), wake: make(chan struct{}, 1), pod: pod, announced: map[string]string{},
		logger: m.Logger.With("pod", pod.Namespace+"/"+pod.Name)}
	w.notes = notes{waiting: map[string]status.Waiting{}, crashes: map[string]*backoff.Backoff{}, startFailed: map[string]time.Time{},
		retryAt: map[string]time.Time{}, retries: map[string]int{},
		removed: map[string]*observed.Container{}, stopped: map[string]bool{}}
	w.probes = probes.New(probes.Config{Exec: m.Runtime, Events: m.Events, Changed: w.poke, UserAgent: m.UserAgent, Counts: &m.probeCounts})
	return w
}

func (w *worker) set(pod *corev1.Pod, gone bool) {
	w.mu.Lock()
	if old := w.pod; !maps.Equal(old.Labels, pod.Labels) || !maps.Equal(old.Annotations, pod.Annotations) {
		w.notes.stale = true // the downward API shows them
	}
	w.pod, w.gone = pod, w.gone || gone
	w.mu.Unlock()
	w.poke()
}

// contentChanged has the volumes mounted or brought up to date at once.
func (w *worker) contentChanged() {
	w.mu.Lock()
	w.notes.stale, w.notes.podRetryAt = true, time.Time{} // a pod may have waited for this
	w.mu.Unlock()
	w.poke()
}

func (w *worker) latest() (*corev1.Pod, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pod, w.gone
}

// reject notes why the pod has failed and reports whether that is news.
func (w *worker) reject(why *status.Rejection) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if why == nil || w.rejected != nil {
		return false
	}
	w.rejected = why
	return true
}

func (w *worker) isRejected() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.rejected != nil
}

func (w *worker) poke() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// run returns when nothing of the pod is left, or when ctx ends.
func (w *worker) run(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer w.tasks.Wait()
	defer w.probes.Close()
	defer cancel()
	for !w.isRemoved() {
		wait, err := w.step(ctx)
		if err != nil && ctx.Err() == nil {
			w.logger.Warn("cannot look at the pod", "err", err)
			wait = lookRetry
		}
		t := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-w.wake:
		case <-t.C:
		}
		t.Stop()
	}
	w.forget()
	w.m.probeCounts.Forget(w.uid)
	if w.m.Contents != nil {
		w.m.Contents.Forget(w.uid)
	}
}

func (w *worker) isRemoved() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.removed
}

// step looks, plans, publishes and acts; it returns how long to sleep at most.
func (w *worker) step(ctx context.Context) (time.Duration, error) {
	w.reap()
	pod, gone := w.latest()
	seen, err := observed.Read(ctx, w.m.Runtime, w.uid)
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	w.live = len(seen.Running()) > 0
	w.mu.Unlock()
	w.syncProbes(ctx, pod, seen)
	pod, pending, generation := w.m.allocate(pod)
	w.recall(pod, seen)
	v := w.view(pod, gone, seen)
	v.pending, v.generation, v.prepared = pending, generation, w.hasClaims()
	if v.refused, err = w.judge(ctx, v); err != nil {
		return 0, err
	}
	s := plan(v)
	w.freeDevices(s)
	if w.reject(s.rejected) {
		w.announceRejection(pod, s.rejected)
	}
	w.announceBackOff(v, s)
	if !gone {
		w.publish(pod, w.status(v, s))
	}
	w.noteSwept(v)
	w.act(ctx, v, s)
	return w.pause(v, s), nil
}

func (w *worker) announceRejection(pod *corev1.Pod, why *status.Rejection) {
	kind := corev1.EventTypeWarning
	if why.Reason == events.DeadlineExceeded { // the pod's own wish
		kind = corev1.EventTypeNormal
	}
	w.m.Events.Event(events.Pod(pod), kind, why.Reason, why.Message)
}

func (w *worker) view(pod *corev1.Pod, gone bool, seen *observed.Pod) view {
	w.mu.Lock()
	defer w.mu.Unlock()
	crashes := make(map[string]*backoff.Backoff, len(w.notes.crashes))
	for name, b := range w.notes.crashes {
		c := *b
		crashes[name] = &c
	}
	return view{
		pod: pod, gone: gone, runtime: seen, now: time.Now(), unwanted: w.unwanted, rejected: w.rejected, refused: w.refused,
		started: w.probes.Started, failed: w.probes.Failed, crashes: crashes,
		startFailed: maps.Clone(w.notes.startFailed), retryAt: maps.Clone(w.notes.retryAt), podRetryAt: w.notes.podRetryAt,
		actuated: w.notes.actuated.clone(), removed: maps.Clone(w.notes.removed),
	}
}

// pause is how long nothing needs to be looked at.
func (w *worker) pause(v view, s step) time.Duration {
	d := resync
	if s.wait > 0 {
		d = min(d, s.wait)
	}
	if s.kind == stay && !s.ended && v.anyReadySandbox() && w.m.Volumes.Refreshes(v.pod) {
		w.mu.Lock()
		defer w.mu.Unlock()
		d = min(d, max(time.Millisecond, w.notes.refreshed.Add(volumes.RefreshEvery).Sub(v.now)))
	}
	return d
}

// status is what to tell the API.
func (w *worker) status(v view, s step) corev1.PodStatus {
	waiting := s.waiting
	w.mu.Lock()
	for name, why := range w.notes.waiting {
		if _, ok := waiting[name]; !ok {
			waiting[name] = why
		}
	}
	w.mu.Unlock()
	w.announceFamily(v.pod)
	now := status.Generate(status.Input{
		Pod: v.pod, Runtime: v.runtime, Waiting: waiting, Ended: s.ended, Rejected: s.rejected, Resize: w.resizeStatus(v),
		RestartsAll: s.restartsAll, Removed: v.removed,
		Held:    w.hasDevices() || w.hasClaims(),
		Ready:   func(c *observed.Container) bool { return w.probes.Ready(c.Id) },
		Started: func(c *observed.Container) bool { return w.probes.Started(c.Id) },
		TerminationMessage: func(c *observed.Container) string {
			return terminationMessage(w.m.Dirs, v.pod, c)
		},
		HostIPs: w.m.HostIPs(), RuntimeName: w.m.RuntimeName, Now: v.now,
	})
	w.deviceStatus(v.pod, &now)
	return now
}

// announceFamily records one event when the node's address has become one of the other version of IP.
func (w *worker) announceFamily(pod *corev1.Pod) {
	if warning := status.FamilyMismatch(pod, w.m.HostIPs()); warning != "" && warning != w.family {
		w.family = warning
		w.m.Events.Event(events.Pod(pod), corev1.EventTypeWarning, events.HostIPsIPFamilyMismatch, warning)
	}
}

// announceBackOff records one event for each incarnation that has to wait.
func (w *worker) announceBackOff(v view, s step) {
	for name := range s.waiting {
		c := v.runtime.Latest(name)
		if c == nil || w.announced[name] == c.Id || w.task != nil { // a task may be what ends the wait
			continue
		}
		w.announced[name] = c.Id
		w.m.Events.Eventf(events.Container(v.pod, name), corev1.EventTypeWarning, events.BackOff,
			"Back-off restarting failed container %s in pod %s_%s(%s)", name, v.pod.Name, v.pod.Namespace, v.pod.UID)
	}
}

// syncProbes probes what runs, until the pod is taken down.
func (w *worker) syncProbes(ctx context.Context, pod *corev1.Pod, seen *observed.Pod) {
	var targets []probes.Target
	v := view{pod: pod, runtime: seen}
	ip := podIP(pod, seen, w.m.HostIPs())
	for _, c := range v.containers() {
		run := v.inSandbox(c.Name)
		if run == nil || !run.Running() {
			continue
		}
		t := probes.Target{Pod: pod, Container: c, ID: run.Id, StartedAt: time.Unix(0, run.StartedAt), IP: ip}
		if old := containerStatus(pod, c.Name); old != nil && t.StartedAt.Before(w.born) &&
			old.ContainerID == w.m.RuntimeName+"://"+run.Id {
			t.Known, t.WasReady, t.WasStarted = true, old.Ready, old.Started != nil && *old.Started
		}
		targets = append(targets, t)
	}
	w.probes.Sync(ctx, targets)
}

func containerStatus(pod *corev1.Pod, name string) *corev1.ContainerStatus {
	for _, list := range [][]corev1.ContainerStatus{pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses,
		pod.Status.EphemeralContainerStatuses} {
		for i := range list {
			if list[i].Name == name {
				return &list[i]
			}
		}
	}
	return nil
}

// podIP is where the pod answers.
func podIP(pod *corev1.Pod, seen *observed.Pod, hostIPs []string) string {
	if ips := podIPs(pod, seen, hostIPs); len(ips) > 0 {
		return ips[0]
	}
	return ""
}

func podIPs(pod *corev1.Pod, seen *observed.Pod, hostIPs []string) []string {
	if pod.Spec.HostNetwork {
		return hostIPs
	}
	var out []string
	network := seen.Sandbox().GetNetwork()
	if network.GetIp() != "" {
		out = append(out, network.Ip)
	}
	for _, ip := range network.GetAdditionalIps() {
		out = append(out, ip.Ip)
	}
	return out
}
