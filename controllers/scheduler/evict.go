package scheduler

import (
	"context"
	"encoding/json"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/scheduler/budgets"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/internal/clusterclock"
)

// evictLimit bounds the preemptions being carried out at once; the scheduling loop waits when it is reached.
const evictLimit = 16

// evictor carries out preemptions.
type evictor struct {
	scheduler  *scheduler
	allowances func() []budgets.Budget
	slots      chan struct{}
	children   sync.WaitGroup
}

func newEvictor(s *scheduler, cfg Config) *evictor {
	return &evictor{scheduler: s, allowances: cfg.allowances, slots: make(chan struct{}, evictLimit)}
}

// allowances lists what the disruption budgets allow now; nothing where they are not served.
func (c Config) allowances() []budgets.Budget {
	if !c.serves(disruptionBudgets) {
		return nil
	}
	return budgets.Of(c.Informers.Policy().V1().PodDisruptionBudgets().Lister())
}

// evict starts one preemption. The preemptor comes back from the queue when the victims are gone.
func (v *evictor) evict(ctx context.Context, t task, d decision) {
	v.slots <- struct{}{}
	t.pass.Go(&v.children, func() error {
		defer func() { <-v.slots }()
		preemptor := t.pod
		ctx := reconcile.WithCause(ctx, preemptor)
		v.nominate(ctx, preemptor, d.node)
		for _, pod := range d.lost {
			v.showNoPromise(ctx, pod)
		}
		for _, victim := range d.victims {
			if err := v.evictOne(ctx, preemptor, d.node, victim); err != nil && ctx.Err() == nil {
				v.scheduler.log.Warn("evicting a pod failed", "pod", victim.Namespace+"/"+victim.Name, "node", d.node, "err", err)
				v.pause(ctx)
				v.scheduler.spare(victim.UID)
			}
		}
		return nil // the pass has failed already: the pod fits nowhere
	})
}

// pause keeps a refused eviction from being decided again at once.
func (v *evictor) pause(ctx context.Context) {
	clusterclock.Wait(ctx, v.scheduler.queue.clock, v.scheduler.queue.backoffMin)
}

// wait returns when no preemption is under way.
func (v *evictor) wait() {
	v.children.Wait()
}

// nominate shows the promise in the pod's status. It is only shown there: the scheduler goes by its own memory. The next term's
// reads it once.
func (v *evictor) nominate(ctx context.Context, pod *plugin.Pod, node string) {
	v.patchStatus(ctx, pod.Pod, map[string]any{"nominatedNodeName": node})
}

// showNoPromise ends what nominate showed.
func (v *evictor) showNoPromise(ctx context.Context, pod *plugin.Pod) {
	v.patchStatus(ctx, pod.Pod, map[string]any{"nominatedNodeName": nil})
}

func (v *evictor) evictOne(ctx context.Context, preemptor *plugin.Pod, node string, victim *corev1.Pod) error {
	v.patchStatus(ctx, victim, map[string]any{"conditions": []corev1.PodCondition{{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, Reason: corev1.PodReasonPreemptionByScheduler,
		Message:            preemptor.Spec.SchedulerName + ": preempting to accommodate a higher priority pod",
		ObservedGeneration: victim.Generation, LastTransitionTime: metav1.NewTime(v.scheduler.queue.clock.Now()),
	}}})
	err := v.scheduler.client.CoreV1().
		Pods(victim.Namespace).
		Delete(ctx, victim.Name, metav1.DeleteOptions{Preconditions: metav1.NewUIDPreconditions(string(victim.UID))})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil // it is gone already
	}
	if err == nil {
		v.scheduler.report.recorder(preemptor.Pod).Eventf(
			victim,
			corev1.EventTypeNormal,
			"Preempted",
			"Preempted by pod %s on node %s",
			preemptor.UID,
			node,
		)
	}
	return err
}

// patchStatus writes what is for people and other controllers to see; preemption goes on without it.
func (v *evictor) patchStatus(ctx context.Context, pod *corev1.Pod, status map[string]any) {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": pod.UID}, "status": status})
	if err == nil {
		_, err = v.scheduler.client.CoreV1().
			Pods(pod.Namespace).
			Patch(ctx, pod.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	}
	if err != nil && ctx.Err() == nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		v.scheduler.log.Warn("showing a preemption failed", "pod", pod.Namespace+"/"+pod.Name, "err", err)
	}
}
