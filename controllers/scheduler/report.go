package scheduler

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/recording"
)

// The limits of reporting. There is at most one report waiting for each pod, so the queue is bounded by the pods.
const (
	reportWorkers     = 8
	reportInterval    = 5 * time.Second // between two reports on one pod; a newer message replaces a waiting one
	reportRetry       = time.Second     // after a refused write
	reportTries       = 5               // writes of one report before it is given up; the next report starts anew
	eventRepeat       = 5 * time.Minute // an unchanged message is told again after this
	reportMessageSize = 1024            // bytes; the API's limit for an event's message
)

// reporter writes why pods wait: the condition PodScheduled=False and the event FailedScheduling. It never delays
// scheduling: reports wait in its own queue, and only the latest for each pod is written.
type reporter struct {
	client    kubernetes.Interface
	clock     clock.PassiveClock
	pods      corelisters.PodLister
	log       *slog.Logger
	loop      reconcile.OwnLoop
	recorders map[string]record.EventRecorder // by schedulerName; set by recordEvents, before anything is written
	queue     workqueue.TypedDelayingInterface[types.UID]

	mu      sync.Mutex
	waiting map[types.UID]*waitingReport
}

// waitingReport is what is known to have been said, and to be said, about one pod.
type waitingReport struct {
	pod             *corev1.Pod
	reason, message string
	tries           int       // refused writes of this report
	sent            time.Time // when something was last written; zero: never
	told            string    // the message of the last event
	toldAt          time.Time
	pass            *reconcile.Attempt // of what is to be said; nil: that is said, or no pass found it out
}

func newReporter(cfg Config, s *scheduler) *reporter {
	return &reporter{
		client: cfg.Client, clock: cfg.Clock, pods: s.pods, log: s.log, loop: s.loop,
		queue:   workqueue.NewTypedDelayingQueueWithConfig(workqueue.TypedDelayingQueueConfig[types.UID]{Clock: cfg.Clock}),
		waiting: map[types.UID]*waitingReport{},
	}
}

// unschedulable asks for a report, which is part of a pass if there is one; it does not block.
func (r *reporter) unschedulable(pod *corev1.Pod, reason, message string, pass *reconcile.Attempt) {
	if len(message) > reportMessageSize {
		message = message[:reportMessageSize-3] + "..."
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiting[pod.UID]
	if w == nil {
		w = &waitingReport{}
		r.waiting[pod.UID] = w
	}
	w.pass.Release()
	pass.Hold()
	w.pod, w.reason, w.message, w.tries, w.pass = pod, reason, message, 0, pass
	r.queue.AddAfter(pod.UID, w.sent.Add(reportInterval).Sub(r.clock.Now()))
}

// scheduled tells that the pod has a node; whatever was still to be said before is dropped.
func (r *reporter) scheduled(pod *corev1.Pod, node string) {
	r.drop(pod.UID)
	r.recorder(pod).Eventf(pod, corev1.EventTypeNormal, "Scheduled", "Successfully assigned %s/%s to %s", pod.Namespace, pod.Name, node)
}

// drop forgets a pod.
func (r *reporter) drop(uid types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if w := r.waiting[uid]; w != nil {
		w.pass.Release()
	}
	delete(r.waiting, uid)
}

// run writes reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	var workers sync.WaitGroup
	for range reportWorkers {
		workers.Go(func() {
			for {
				uid, shutdown := r.queue.Get()
				if shutdown {
					return
				}
				r.write(ctx, uid)
				r.queue.Done(uid)
			}
		})
	}
	<-ctx.Done()
	r.queue.ShutDown()
	workers.Wait()
}

// end notes the passes whose reports are not written any more. It is called when all attempts of the term have ended.
func (r *reporter) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.waiting {
		w.pass.Release()
	}
	clear(r.waiting)
}

// write says the latest report of a pod, within its pass. If that is noted already, or there was none, each write is a pass of its own.
func (r *reporter) write(ctx context.Context, uid types.UID) {
	w, tell := r.next(uid, r.clock.Now())
	if w.pod == nil {
		return
	}
	defer w.pass.Release()
	if tell {
		r.recorder(w.pod).Event(w.pod, corev1.EventTypeWarning, "FailedScheduling", w.message)
	}
	pod, patch := r.due(w)
	if patch == nil {
		return
	}
	if w.pass != nil {
		_ = r.patch(w.pass.In(ctx), w, pod, patch) // the pass has failed already: the pod got no node
		return
	}
	own := r.loop.Begin(keyOf(pod))
	own.End(r.patch(own.In(ctx), w, pod, patch))
}

// due gives the pod as it is known now, and the patch that brings its condition to the report; nil: nothing is to be written.
func (r *reporter) due(w waitingReport) (*corev1.Pod, []byte) {
	pod, err := r.pods.Pods(w.pod.Namespace).Get(w.pod.Name)
	if err != nil || pod.UID != w.pod.UID || pod.Spec.NodeName != "" {
		r.drop(w.pod.UID)
		return nil, nil
	}
	return pod, conditionPatch(pod, w.reason, w.message, r.clock.Now())
}

// patch writes the condition. It returns why that was refused; it is tried again then.
func (r *reporter) patch(ctx context.Context, w waitingReport, pod *corev1.Pod, patch []byte) error {
	ctx = reconcile.WithGap(reconcile.WithCause(ctx, pod), aNode, w.message)
	_, err := r.client.CoreV1().
		Pods(pod.Namespace).
		Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err == nil || ctx.Err() != nil || apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // a conflict means the name belongs to another pod now
	}
	r.log.Warn("reporting an unschedulable pod failed", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	r.again(w)
	return err
}

// again tries a refused write once more, up to reportTries. The report's pass stays open that long.
func (r *reporter) again(of waitingReport) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiting[of.pod.UID]
	if w == nil {
		return
	}
	if w.tries++; w.tries < reportTries {
		r.queue.AddAfter(of.pod.UID, reportRetry)
		if w.pass == nil {
			of.pass.Hold()
			w.pass = of.pass
		}
	}
}

// next gives the report to write, and with it the hold on its pass, and whether to tell it as an event, too. Without a pod nothing is to
// be said.
func (r *reporter) next(uid types.UID, now time.Time) (report waitingReport, tell bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.waiting[uid]
	if w == nil {
		return waitingReport{}, false
	}
	w.sent = now
	if w.reason == corev1.PodReasonUnschedulable && (w.told != w.message || now.Sub(w.toldAt) >= eventRepeat) {
		w.told, w.toldAt, tell = w.message, now, true
	}
	report, w.pass = *w, nil
	return report, tell
}

// conditionPatch gives the strategic merge patch that makes PodScheduled say so, or nil if it does already. The uid in
// it keeps the patch off another pod of the same name.
func conditionPatch(pod *corev1.Pod, reason, message string, now time.Time) []byte {
	want := conditions.Pods.Dated(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: reason, Message: message, ObservedGeneration: pod.Generation,
	}, now)
	have := conditions.Pods.Find(pod.Status.Conditions, want.Type)
	if have != nil && have.Status == want.Status && have.Reason == reason && have.Message == message {
		return nil
	}
	patch, err := json.Marshal(map[string]any{
		"metadata": map[string]any{"uid": pod.UID},
		"status":   map[string]any{"conditions": []corev1.PodCondition{want}},
	})
	if err != nil {
		return nil // cannot happen for API types
	}
	return patch
}

// recorder is that of the scheduler that the pod asks for.
func (r *reporter) recorder(pod *corev1.Pod) record.EventRecorder {
	return r.recorders[pod.Spec.SchedulerName]
}

// recordEvents starts sending events; the returned function stops it.
func (r *reporter) recordEvents(ctx context.Context, counts *numbers.Ledger, names iter.Seq[string]) (stop func()) {
	if counts == nil {
		counts = &numbers.Ledger{}
	}
	events := recording.Start(ctx, r.client, r.clock, &counts.Events, r.log)
	r.recorders = map[string]record.EventRecorder{}
	for name := range names {
		r.recorders[name] = events.Recorder(name)
	}
	return events.Stop
}
