package podgc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/pods"
	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

const (
	// interval is the pause between two looks at all pods.
	interval = 20 * time.Second
	// finishedLimit is how many finished pods are kept, the youngest.
	finishedLimit = 12500
	// orphanPatience is how long a node must be missing before its pods end.
	orphanPatience = 40 * time.Second
)

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Logger    *slog.Logger
}

// controller is one term of the controller. Its one worker alone uses missing.
type controller struct {
	cfg     Config
	missing map[string]time.Time
}

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Core().V1().Pods().Informer()
	f.Core().V1().Nodes().Informer()
	return nil
}

// everything is the only key: each pass looks at all pods.
var everything = reconcile.Key{Name: "all pods"}

// Run looks after pods until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg: cfg, missing: map[string]time.Time{}}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "podgc",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Cache(cfg.Informers.Core().V1().Pods().Informer()),
			{Informer: cfg.Informers.Core().V1().Nodes().Informer(), Map: nodeChanged},
		},
		Feeds:   []reconcile.Feed{reconcile.Once(everything)},
		Workers: 1,
		Logger:  cfg.Logger,
	})
}

// nodeChanged looks again when a node goes or is declared out of service.
func nodeChanged(_, after metav1.Object) []reconcile.Key {
	if node, ok := after.(*corev1.Node); ok && !isOutOfService(node) {
		return nil
	}
	return []reconcile.Key{everything}
}

func (c *controller) reconcile(ctx context.Context, _ reconcile.Key) (time.Duration, error) {
	all, err := c.cfg.Informers.Core().V1().Pods().Lister().List(labels.Everything())
	if err != nil {
		return 0, err
	}
	nodes, err := c.nodes()
	if err != nil {
		return 0, err
	}
	now := time.Now()
	c.noteMissing(all, nodes, now)
	var errs []error
	for _, v := range plan(all, nodes, c.missing, now) {
		errs = append(errs, c.end(reconcile.WithCause(ctx, v.pod), v, now))
	}
	return interval, errors.Join(errs...)
}

func (c *controller) nodes() (map[string]*corev1.Node, error) {
	list, err := c.cfg.Informers.Core().V1().Nodes().Lister().List(labels.Everything())
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
	if !pods.Finished(v.pod) && v.why != unplaced {
		if err := c.fail(ctx, v.pod, now); err != nil {
			return err
		}
	}
	err := c.cfg.Client.CoreV1().Pods(v.pod.Namespace).Delete(ctx, v.pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64),
		Preconditions:      metav1.NewUIDPreconditions(string(v.pod.UID)),
	})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s/%s: %w", v.pod.Namespace, v.pod.Name, err)
	}
	return nil
}

// nodeGone asks the API, not the cache.
func (c *controller) nodeGone(ctx context.Context, name string) (bool, error) {
	_, err := c.cfg.Client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	return false, err
}

// fail records that the pod ended, and why, for whoever counts its outcome.
func (c *controller) fail(ctx context.Context, pod *corev1.Pod, now time.Time) error {
	next := pod.DeepCopy()
	next.Status.Phase = corev1.PodFailed
	next.Status.Conditions = append(
		slices.DeleteFunc(next.Status.Conditions, func(x corev1.PodCondition) bool { return x.Type == corev1.DisruptionTarget }),
		corev1.PodCondition{
			Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(now),
			Reason: "DeletionByPodGC", Message: "PodGC: the pod's node is gone or out of service",
		})
	_, err := c.cfg.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("mark pod %s/%s failed: %w", pod.Namespace, pod.Name, err)
	}
	return nil
}
