package podautoscaler

import (
	"context"
	"fmt"
	"time"

	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/util/retry"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/newest"
)

const (
	// period is how often each autoscaler is looked at; upstream's.
	period = 15 * time.Second
	// passTimeout bounds the requests of one pass.
	passTimeout = 30 * time.Second
)

var autoscalers = reconcile.KindOf[*autoscalingv2.HorizontalPodAutoscaler](
	autoscalingv2.SchemeGroupVersion.WithResource("horizontalpodautoscalers"))

// New keeps HorizontalPodAutoscalers.
func New() reconcile.Controller { return with(connect) }

// outside is what is reached by requests only.
type outside struct {
	source
	scales
}

// with is New with other metrics and scales.
func with(connect func(*reconcile.Env) (outside, error)) reconcile.Controller {
	return reconcile.Controller{
		Name:    "horizontal-pod-autoscaler-controller",
		Account: "horizontal-pod-autoscaler",
		Reads:   []reconcile.Read{autoscalers, reconcile.LabelledPods},
		Run: func(ctx context.Context, env *reconcile.Env) error {
			out, err := connect(env)
			if err != nil {
				return err
			}
			return run(ctx, env, out)
		},
	}
}

// controller is one term.
type controller struct {
	env         *reconcile.Env
	outside     outside
	autoscalers reconcile.Cache[*autoscalingv2.HorizontalPodAutoscaler]
	pods        reconcile.Cache[*corev1.Pod]
	written     newest.Versions[*autoscalingv2.HorizontalPodAutoscaler]
	memory      *memory
}

func run(ctx context.Context, env *reconcile.Env, out outside) error {
	c := &controller{env: env, outside: out, autoscalers: autoscalers.From(env), pods: reconcile.LabelledPods.From(env), memory: newMemory()}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "podautoscaler", Queue: "horizontalpodautoscaler", Reconcile: c.reconcile, Env: env,
		Sources: []reconcile.Source{reconcile.Changes(c.autoscalers, changed), reconcile.Filled(c.pods)},
	})
}

// changed leaves out changes of the status: the period counts from the pass that wrote it.
func changed(before, after metav1.Object) []reconcile.Key {
	switch {
	case after == nil:
		return []reconcile.Key{reconcile.KeyOf(before)}
	case before == nil || before.GetGeneration() != after.GetGeneration() || before.GetUID() != after.GetUID():
		return []reconcile.Key{reconcile.KeyOf(after)}
	}
	return nil
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	hpa, err := c.written.Get(c.autoscalers, key)
	if apierrors.IsNotFound(err) {
		c.memory.forget(key)
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithTimeout(reconcile.WithCause(ctx, hpa), passTimeout)
	defer cancel()
	p, err := c.pass(ctx, key, hpa)
	if p.err != nil {
		c.env.Logger.Debug("the autoscaler cannot do all it should", "key", key.String(), "err", p.err)
	}
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		c.env.Logger.Warn("an autoscaler's status was not written", "key", key.String(), "err", err)
	}
	return period, nil // upstream tries again no sooner either
}

// pass observes, plans and acts.
func (c *controller) pass(ctx context.Context, key reconcile.Key, hpa *autoscalingv2.HorizontalPodAutoscaler) (plan, error) {
	target, err := c.outside.find(ctx, hpa)
	if err != nil {
		p := unscalable(hpa, c.memory.history(key), err, c.env.Now())
		return p, c.finish(ctx, key, hpa, &p)
	}
	o := c.observe(ctx, key, hpa, target.scale)
	p := planOf(o)
	if p.rescale {
		err := c.rescale(ctx, target, p.wanted)
		o.now = c.env.Now() // a scale that others write meanwhile is tried again, after pauses
		if err != nil {
			p.refused(&o, err)
		} else {
			p.rescaled(&o)
			c.env.Events.Eventf(hpa, corev1.EventTypeNormal, "SuccessfulRescale", "New size: %d; reason: %s", p.wanted, p.reason)
		}
	}
	return p, c.finish(ctx, key, hpa, &p)
}

// observe reads the metrics only if they decide.
func (c *controller) observe(
	ctx context.Context, key reconcile.Key, hpa *autoscalingv2.HorizontalPodAutoscaler, scale *autoscalingv1.Scale,
) observed {
	o := observed{hpa: hpa, scale: scale, history: c.memory.history(key)}
	if begin(hpa, scale.Spec.Replicas).measure {
		var selector labels.Selector
		if o.pods, selector, o.selector = c.podsOf(key, scale.Status.Selector); o.selector == nil {
			for _, spec := range hpa.Spec.Metrics {
				o.readings = append(o.readings, read(ctx, c.outside, hpa.Namespace, selector, spec))
			}
		}
	}
	o.now = c.env.Now()
	return o
}

// rescale writes the number, over changes of others to the same object.
func (c *controller) rescale(ctx context.Context, t target, replicas int32) error {
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		next := t.scale.DeepCopy()
		next.Spec.Replicas = replicas
		err := c.outside.update(ctx, t, next)
		if apierrors.IsConflict(err) {
			if found, again := c.outside.again(ctx, t); again == nil {
				t.scale = found
			}
		}
		return err
	})
}

// finish says what happened and keeps what the next pass needs.
func (c *controller) finish(ctx context.Context, key reconcile.Key, hpa *autoscalingv2.HorizontalPodAutoscaler, p *plan) error {
	c.memory.keep(key, p.history)
	for _, e := range p.events {
		c.env.Events.Event(hpa, corev1.EventTypeWarning, e.reason, e.message)
	}
	if apiequality.Semantic.DeepEqual(hpa.Status, p.status) {
		return nil
	}
	next := hpa.DeepCopy()
	next.Status = p.status
	found, err := c.env.Client.AutoscalingV2().HorizontalPodAutoscalers(key.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil {
		c.env.Events.Event(hpa, corev1.EventTypeWarning, "FailedUpdateStatus", err.Error())
		return fmt.Errorf("failed to update status for %s: %w", key, err)
	}
	c.written.Wrote(found)
	return nil
}
