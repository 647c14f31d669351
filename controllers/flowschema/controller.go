package flowschema

import (
	"context"
	"fmt"
	"time"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

var (
	flowSchemas    = reconcile.KindOf[*flowcontrolv1.FlowSchema](flowcontrolv1.SchemeGroupVersion.WithResource("flowschemas"))
	priorityLevels = reconcile.KindOf[*flowcontrolv1.PriorityLevelConfiguration](
		flowcontrolv1.SchemeGroupVersion.WithResource("prioritylevelconfigurations"),
	)
)

// New keeps the conditions.
func New() reconcile.Controller {
	return reconcile.Controller{
		Name:  "flow-schema-controller",
		Reads: []reconcile.Read{flowSchemas, priorityLevels},
		Run:   run,
		OfAPI: true,
	}
}

type controller struct {
	env     *reconcile.Env
	schemas reconcile.Cache[*flowcontrolv1.FlowSchema]
	levels  reconcile.Cache[*flowcontrolv1.PriorityLevelConfiguration]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env: env, schemas: flowSchemas.From(env), levels: priorityLevels.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "flowschema",
		Reconcile: c.reconcile,
		Sources:   []reconcile.Source{reconcile.Self(c.schemas), reconcile.Changes(c.levels, c.levelChanged)},
		Env:       env,
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
	schemas, err := c.schemas.List("", nil)
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
	schema, err := c.schemas.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	_, err = c.levels.Get(reconcile.Key{Name: schema.Spec.PriorityLevelConfiguration.Name})
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	next, changed := plan(schema, err == nil, c.env.Now())
	if !changed {
		return 0, nil
	}
	_, err = c.env.Client.FlowcontrolV1().FlowSchemas().UpdateStatus(reconcile.WithCause(ctx, schema), next, metav1.UpdateOptions{})
	if err == nil || apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("write condition: %w", err)
}

// dangling are the conditions of schemas: they have one.
var dangling = conditions.Of(
	func(c *flowcontrolv1.FlowSchemaCondition) (flowcontrolv1.FlowSchemaConditionType, flowcontrolv1.ConditionStatus, *metav1.Time) {
		return c.Type, c.Status, &c.LastTransitionTime
	},
)

// plan returns the schema with the condition in upstream's words, and whether that changes it.
func plan(schema *flowcontrolv1.FlowSchema, levelFound bool, now time.Time) (*flowcontrolv1.FlowSchema, bool) {
	level := schema.Spec.PriorityLevelConfiguration.Name
	want := flowcontrolv1.FlowSchemaCondition{
		Type: flowcontrolv1.FlowSchemaConditionDangling, Status: flowcontrolv1.ConditionFalse, Reason: "Found",
		Message: fmt.Sprintf("This FlowSchema references the PriorityLevelConfiguration object named %q and it exists", level),
	}
	if !levelFound {
		want.Status, want.Reason = flowcontrolv1.ConditionTrue, "NotFound"
		want.Message = fmt.Sprintf(
			"This FlowSchema references the PriorityLevelConfiguration object named %q but there is no such object",
			level,
		)
	}
	have := dangling.Find(schema.Status.Conditions, want.Type)
	if have != nil && have.Status == want.Status && have.Reason == want.Reason && have.Message == want.Message {
		return nil, false
	}
	next := schema.DeepCopy()
	next.Status.Conditions = dangling.Set(next.Status.Conditions, want, now)
	return next, true
}
