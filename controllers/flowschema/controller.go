package flowschema

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
)

// Config is what the controller needs for one term.
type Config struct {
	Client    kubernetes.Interface
	Informers informers.SharedInformerFactory
	Logger    *slog.Logger
}

type controller struct{ cfg Config }

// Warm creates the informers that the controller reads.
func Warm(f informers.SharedInformerFactory) error {
	f.Flowcontrol().V1().FlowSchemas().Informer()
	f.Flowcontrol().V1().PriorityLevelConfigurations().Informer()
	return nil
}

// Run keeps the conditions until ctx ends.
func Run(ctx context.Context, cfg Config) error {
	c := &controller{cfg}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "flowschema",
		Reconcile: c.reconcile,
		Sources: []reconcile.Source{
			reconcile.Self(cfg.Informers.Flowcontrol().V1().FlowSchemas().Informer()),
			{Informer: cfg.Informers.Flowcontrol().V1().PriorityLevelConfigurations().Informer(), Map: c.levelChanged},
		},
		Logger: cfg.Logger,
	})
}

// levelChanged maps a level that came or went to the schemas that name it.
func (c *controller) levelChanged(before, after metav1.Object) []reconcile.Key {
	if before != nil && after != nil {
		return nil
	}
	level := after
	if level == nil {
		level = before
	}
	schemas, err := c.cfg.Informers.Flowcontrol().V1().FlowSchemas().Lister().List(labels.Everything())
	if err != nil {
		return nil // a lister of a cache has no errors
	}
	var keys []reconcile.Key
	for _, s := range schemas {
		if s.Spec.PriorityLevelConfiguration.Name == level.GetName() {
			keys = append(keys, reconcile.KeyOf(s))
		}
	}
	return keys
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	listers := c.cfg.Informers.Flowcontrol().V1()
	schema, err := listers.FlowSchemas().Lister().Get(key.Name)
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, err = listers.PriorityLevelConfigurations().Lister().Get(schema.Spec.PriorityLevelConfiguration.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	next, changed := plan(schema, err == nil, metav1.Now())
	if !changed {
		return 0, nil
	}
	_, err = c.cfg.Client.FlowcontrolV1().FlowSchemas().UpdateStatus(reconcile.WithCause(ctx, schema), next, metav1.UpdateOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("write condition: %w", err)
}

// plan returns the schema with the condition in upstream's words, and whether that changes it.
func plan(schema *flowcontrolv1.FlowSchema, levelFound bool, now metav1.Time) (*flowcontrolv1.FlowSchema, bool) {
	level := schema.Spec.PriorityLevelConfiguration.Name
	want := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found", LastTransitionTime: now,
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}
	if !levelFound {
		want.Status, want.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		want.Message = fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object", level)
	}
	at := slices.IndexFunc(schema.Status.Conditions, func(c flowcontrolv1.FlowSchemaCondition) bool { return c.Type == want.Type })
	next := schema.DeepCopy()
	if at < 0 {
		next.Status.Conditions = append(next.Status.Conditions, want)
		return next, true
	}
	have := schema.Status.Conditions[at]
	if have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return nil, false
	}
	if have.Status == want.Status {
		want.LastTransitionTime = have.LastTransitionTime
	}
	next.Status.Conditions[at] = want
	return next, true
}
