package storagemigration

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// unhandled begins the message of a failure.
const unhandled = "migration encountered unhandled error: "

// migrate writes all objects again that were last written before the migration began.
func (c *controller) migrate(ctx context.Context, m *migration) (time.Duration, error) {
	resource, err := c.discover(ctx, m.Spec.Resource)
	if err != nil {
		return 0, err
	}
	if resource == nil {
		return c.waitFor(ctx, m, unhandled+"unable to obtain GVR from discovery")
	}
	all, err := c.objects(ctx, resource)
	if err != nil {
		return 0, err
	}
	var candidates []object
	for _, o := range all {
		old, err := isCandidate(o, m.Status.ResourceVersion)
		if err != nil {
			return 0, c.fail(ctx, m, unhandled+err.Error())
		}
		if old {
			candidates = append(candidates, o)
		}
	}
	return c.rewrite(ctx, m, resource, candidates, progress{len(candidates), len(all)})
}

// rewrite goes through the candidates, and ends the migration.
func (c *controller) rewrite(
	ctx context.Context,
	m *migration,
	resource *found,
	candidates []object,
	p progress,
) (time.Duration, error) {
	for _, o := range candidates {
		err := c.touch(ctx, resource, o)
		switch {
		case err == nil, apierrors.IsConflict(err), apierrors.IsNotFound(err): // what somebody else wrote is migrated
			p.left--
		case ctx.Err() != nil:
			return 0, ctx.Err()
		case mayPass(err):
			return c.later(ctx, m, p, err)
		default:
			c.put(m, migrationv1.MigrationRunning, metav1.ConditionTrue, runningReason, p.message(nil))
			return 0, c.fail(ctx, m, fmt.Sprintf("%d/%d not yet migrated. %s%s", p.left, p.total, unhandled, err))
		}
	}
	c.put(m, migrationv1.MigrationRunning, metav1.ConditionTrue, runningReason, p.message(nil))
	return 0, c.set(ctx, m, migrationv1.MigrationSucceeded, metav1.ConditionTrue, succeededReason, "Migration completed")
}

// touch patches an object without changing it, if it is still at the version that was listed.
func (c *controller) touch(ctx context.Context, resource *found, o object) error {
	apiVersion, kind := resource.GroupVersion().WithKind(resource.kind).ToAPIVersionAndKind()
	metadata := map[string]string{"resourceVersion": o.version}
	patch, err := json.Marshal(map[string]any{"apiVersion": apiVersion, "kind": kind, "metadata": metadata})
	if err != nil {
		return err
	}
	_, err = c.env.Metadata.Resource(resource.GroupVersionResource).Namespace(o.namespace).
		Patch(ctx, o.name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: controllerName})
	return err
}

// later shows what has to pass, and comes back.
func (c *controller) later(ctx context.Context, m *migration, p progress, why error) (time.Duration, error) {
	shown := c.set(ctx, m, migrationv1.MigrationRunning, metav1.ConditionTrue, runningReason, p.message(why))
	if seconds, ok := apierrors.SuggestsClientDelay(why); ok && shown == nil {
		return max(1, time.Duration(seconds)) * time.Second, nil
	}
	return 0, why
}

// mayPass reports whether the same write may succeed later.
func mayPass(err error) bool {
	return utilnet.IsConnectionReset(err) || utilnet.IsHTTP2ConnectionLost(err) || utilnet.IsProbableEOF(err) ||
		apierrors.IsServerTimeout(err) || apierrors.IsTooManyRequests(err) || apierrors.IsServiceUnavailable(err) ||
		apierrors.IsInternalError(err) || apierrors.IsTimeout(err)
}
