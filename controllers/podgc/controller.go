package podgc

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
	"github.com/setpoint-io/setpoint/controllers/reconcile/podstate"
)

const (
	// interval is the pause between two looks at all pods.
	interval = 20 * time.Second
	// finishedLimit is how many finished pods are kept, the youngest.
	finishedLimit = 12500
	// orphanPatience is how long a node must be missing before its pods end.
	orphanPatience = 40 * time.Second
)

// New looks after pods.
func New() reconcile.Controller { return Keeping(finishedLimit) }

// Keeping is the same with another number of finished pods that are kept.
func Keeping(finished int) reconcile.Controller {
	return reconcile.Controller{
		Name:  "pod-garbage-collector",
		Reads: []reconcile.Read{reconcile.Pods, reconcile.Nodes},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, finished) },
	}
}

// controller is one term of the controller. Its one worker alone uses missing.
type controller struct {
	env     *reconcile.Env
	pods    reconcile.Cache[*corev1.Pod]
	known   reconcile.Cache[*corev1.Node]
	missing map[string]time.Time
	keep    int // finished pods
}

func run(ctx context.Context, env *reconcile.Env, keep int) error {
	c := &controller{env: env, keep: keep, pods: reconcile.Pods.From(env), known: reconcile.Nodes.From(env), missing: map[string]time.Time{}}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "podgc",
		Queue:     "orphaned_pods_nodes",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Filled(c.pods), reconcile.Changes(c.known, nodeChanged)},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Env:       env,
	})
}

// everything is the only key: each pass looks at all pods.
var everything = reconcile.Key{Name: "all pods"}

// nodeChanged looks again when a node goes or is declared out of service.
func nodeChanged(_, after metav1.Object) []reconcile.Key {
	if node, ok := after.(*corev1.Node); ok && !isOutOfService(node) {
		return nil
	}
	return []reconcile.Key{everything}
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.pods.List("", nil)
	if err != nil {
		return 0, err
	}
	nodes, err := c.nodes()
	if err != nil {
		return 0, err
	}
	now := c.env.Now()
	c.noteMissing(all, nodes, now)
	var errs []error
	for _, v := range plan(all, nodes, c.missing, c.keep, now) {
		errs = append(errs, c.end(reconcile.WithCause(ctx, v.pod), v, now))
	}
	return interval, errors.Join(errs...)
}

func (c *controller) nodes() (map[string]*corev1.Node, error) {
	list, err := c.known.List("", nil)
	if err != nil {
		return nil, err
	}
	nodes := make(map[string]*corev1.Node, len(list))
	for _, n := range list {
		nodes[n.Name] = n
	}
	return nodes, nil
}

// noteMissing keeps since when each node that pods name has been missing.
func (c *controller) noteMissing(all []*corev1.Pod, nodes map[string]*corev1.Node, now time.Time) {
	still := map[string]time.Time{}
	for _, p := range all {
		name := p.Spec.NodeName
		if name == "" || nodes[name] != nil {
			continue
		}
		since, known := c.missing[name]
		if !known {
			since = now
		}
		still[name] = since
	}
	c.missing = still
}

// end ends one pod without grace: nobody is left who would confirm it.
func (c *controller) end(ctx context.Context, v victim, now time.Time) error {
	if v.why == orphaned {
		if gone, err := c.nodeGone(ctx, v.pod.Spec.NodeName); err != nil || !gone {
			return err
		}
	}
	if !podstate.Finished(v.pod) {
		if err := c.fail(ctx, v, now); err != nil {
			return err
		}
	}
	err := c.env.Client.CoreV1().Pods(v.pod.Namespace).Delete(ctx, v.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(v.pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", v.pod.Namespace, v.pod.Name, err)
	}
	return nil
}

// nodeGone asks the API, not the cache. No Node can have a name that is no name of an object, and no client could ask for it.
func (c *controller) nodeGone(ctx context.Context, name string) (bool, error) {
	if len(validation.NameIsDNSSubdomain(name, false)) > 0 {
		return true, nil
	}
	_, err := c.env.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// fail records that the pod ended, and why if its node is gone, for whoever counts its outcome.
func (c *controller) fail(ctx context.Context, v victim, now time.Time) error {
	next := v.pod.DeepCopy()
	next.Status.Phase, next.Status.ObservedGeneration = corev1.PodFailed, v.pod.Generation
	if v.why == orphaned {
		next.Status.Conditions = conditions.Pods.SetLast(next.Status.Conditions, corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
			ObservedGeneration: v.pod.Generation, Reason: "DeletionByPodGC", Message: "PodGC: node no longer exists",
		})
	}
	_, err := c.env.Client.CoreV1().Pods(next.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark pod %s/%s failed: %w", next.Namespace, next.Name, err)
	}
	return nil
}
