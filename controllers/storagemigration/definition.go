package storagemigration

import (
	"context"
	"fmt"

	migrationv1 "k8s.io/api/storagemigration/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	applyv1 "k8s.io/apiextensions-apiserver/pkg/client/applyconfiguration/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// runner is the field manager of what is written to definitions; upstream's.
const runner = "migration-runner-controller"

// markDefinition shows on the definition of a custom resource that its objects are being migrated, and of which of its
// generations that was.
func (c *controller) markDefinition(ctx context.Context, m *migration) error {
	definition, err := c.definition(ctx, m.Spec.Resource)
	if definition == nil || err != nil {
		return err
	}
	message := fmt.Sprintf("Migration %s is running", m.Name)
	return c.applyStatus(ctx, definition, c.condition(definition, apiextensionsv1.ConditionTrue, "MigrationRunning", message))
}

// releaseDefinition ends that. If the definition is as it was at the beginning, its objects are kept in the current
// storage version alone, and the others are forgotten.
//
// Upstream forgets them after a migration that failed, too, although objects may be left in them; here only one that succeeded does that.
func (c *controller) releaseDefinition(ctx context.Context, m *migration) error {
	definition, err := c.definition(ctx, m.Spec.Resource)
	if definition == nil || err != nil || marked(definition) == nil {
		return err
	}
	succeeded := is(m, migrationv1.MigrationSucceeded)
	reason, message := "MigrationFailed", "The migration has failed"
	unchanged := marked(definition).ObservedGeneration == definition.Generation
	switch {
	case succeeded && unchanged:
		reason, message = "MigrationSucceeded", "The migration has succeeded and the stored versions have been updated"
	case succeeded:
		reason, message = "MigrationSucceeded", "The migration has succeeded but the stored versions have not been updated due to a generation mismatch"
	}
	status := c.condition(definition, apiextensionsv1.ConditionFalse, reason, message)
	for _, version := range definition.Spec.Versions {
		if version.Storage && succeeded && unchanged {
			status = status.WithStoredVersions(version.Name)
		}
	}
	return c.applyStatus(ctx, definition, status)
}

// marked is the condition that shows a migration as running; nil: there is none, or it was taken away before.
func marked(definition *apiextensionsv1.CustomResourceDefinition) *apiextensionsv1.CustomResourceDefinitionCondition {
	for i, condition := range definition.Status.Conditions {
		if condition.Type == apiextensionsv1.StorageMigrating && condition.Status == apiextensionsv1.ConditionTrue {
			return &definition.Status.Conditions[i]
		}
	}
	return nil
}

// definition reads that of a custom resource; nil: the resource has none.
func (c *controller) definition(ctx context.Context, resource metav1.GroupResource) (*apiextensionsv1.CustomResourceDefinition, error) {
	name := resource.Resource + "." + resource.Group
	definition, err := c.env.Extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("definition %s: %w", name, err)
	}
	return definition, nil
}

func (c *controller) condition(
	definition *apiextensionsv1.CustomResourceDefinition,
	status apiextensionsv1.ConditionStatus,
	reason, message string,
) *applyv1.CustomResourceDefinitionStatusApplyConfiguration {
	return applyv1.CustomResourceDefinitionStatus().WithConditions(applyv1.CustomResourceDefinitionCondition().
		WithType(apiextensionsv1.StorageMigrating).WithStatus(status).WithReason(reason).WithMessage(message).
		WithLastTransitionTime(metav1.NewTime(c.env.Now())).WithObservedGeneration(definition.Generation))
}

// applyStatus writes it if the definition is still what was read.
func (c *controller) applyStatus(
	ctx context.Context,
	definition *apiextensionsv1.CustomResourceDefinition,
	status *applyv1.CustomResourceDefinitionStatusApplyConfiguration,
) error {
	apply := applyv1.CustomResourceDefinition(definition.Name).WithResourceVersion(definition.ResourceVersion).WithStatus(status)
	_, err := c.env.Extensions.ApiextensionsV1().CustomResourceDefinitions().
		ApplyStatus(ctx, apply, metav1.ApplyOptions{FieldManager: runner, Force: true})
	if err != nil {
		return fmt.Errorf("status of definition %s: %w", definition.Name, err)
	}
	return nil
}
