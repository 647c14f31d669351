package rest

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/rest/disruption"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// evictionAttempts bounds how often the deletion of a pod that no budget guards is
// tried again because the pod changed.
const evictionAttempts = 20

var podDisruptionBudgets = policyv1.SchemeGroupVersion.WithResource("poddisruptionbudgets")

// evictionStore serves pods/eviction: a delete that a budget may refuse to protect
// an application. A disruption is taken from the budget before the pod is deleted,
// in a write of its own: who fails in between has been too careful, never too bold.
type evictionStore struct {
	pods    *Store
	budgets *storage.Table
}

var _ rest.NamedCreater = evictionStore{}

// New implements rest.Storage.
func (e evictionStore) New() runtime.Object { return &policyv1.Eviction{} }

// Destroy implements rest.Storage.
func (e evictionStore) Destroy() {}

// Create implements rest.NamedCreater.
func (e evictionStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc, options *metav1.CreateOptions) (runtime.Object, error) {
	eviction, ok := obj.(*policyv1.Eviction)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a Eviction object: %T", obj))
	}
	if eviction.Name != name {
		return nil, apierrors.NewBadRequest("name in URL does not match name in Eviction object")
	}
	deletion, err := evictionOptions(eviction, options)
	if err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, eviction.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	pod, err := e.deleteUnguarded(ctx, name, deletion)
	if err != nil {
		return nil, err
	}
	if pod == nil {
		return &metav1.Status{Status: metav1.StatusSuccess}, nil
	}
	return e.evictGuarded(ctx, pod, deletion)
}

// evictionOptions are those of the deletion; dry run may be asked for in either place.
func evictionOptions(eviction *policyv1.Eviction, options *metav1.CreateOptions) (*metav1.DeleteOptions, error) {
	deletion := eviction.DeleteOptions
	if deletion == nil {
		return &metav1.DeleteOptions{DryRun: options.DryRun}, nil
	}
	if ptr.Deref(deletion.IgnoreStoreReadErrorWithClusterBreakingPotential, false) {
		return nil, apierrors.NewInvalid(policyv1.SchemeGroupVersion.WithKind("Eviction").GroupKind(), eviction.Name, field.ErrorList{
			field.Invalid(field.NewPath("deleteOptions", "ignoreStoreReadErrorWithClusterBreakingPotential"), true, "can not be set for pod eviction, try after removing the option"),
		})
	}
	deletion = deletion.DeepCopy()
	switch {
	case len(deletion.DryRun) == 0:
		deletion.DryRun = options.DryRun
	case len(options.DryRun) > 0 && !slices.Equal(options.DryRun, deletion.DryRun):
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Non-matching dry-run options in request and content: %v and %v", options.DryRun, deletion.DryRun))
	}
	return deletion, nil
}

// deleteUnguarded deletes a pod that serves nobody yet or any more. It returns the
// pod if a budget may guard it, nil after a deletion.
func (e evictionStore) deleteUnguarded(ctx context.Context, name string, options *metav1.DeleteOptions) (*corev1.Pod, error) {
	var err error
	for range evictionAttempts {
		var pod *corev1.Pod
		if pod, err = e.pod(ctx, name); err != nil {
			return nil, err
		}
		if !unguarded(pod) {
			return pod, nil
		}
		deletion := options
		if pod.Status.Phase == corev1.PodPending && pod.DeletionTimestamp == nil {
			deletion = atVersion(options, pod.ResourceVersion) // it may become ready meanwhile
		}
		err = e.markAndDelete(ctx, name, deletion)
		if !apierrors.IsConflict(err) || hasVersion(options) {
			return nil, err
		}
	}
	return nil, err
}

func (e evictionStore) pod(ctx context.Context, name string) (*corev1.Pod, error) {
	found, err := e.pods.table.Get(ctx, e.pods.namespace(ctx), name, "")
	if err != nil {
		return nil, err
	}
	return found.Copy().(*corev1.Pod), nil
}

func unguarded(pod *corev1.Pod) bool {
	switch pod.Status.Phase {
	case corev1.PodSucceeded, corev1.PodFailed, corev1.PodPending:
		return true
	}
	return pod.DeletionTimestamp != nil
}

func (e evictionStore) evictGuarded(ctx context.Context, pod *corev1.Pod, options *metav1.DeleteOptions) (runtime.Object, error) {
	budgets, err := e.budgetsOf(ctx, pod)
	if err != nil {
		return nil, err
	}
	if len(budgets) > 1 {
		return &metav1.Status{
			Status:  metav1.StatusFailure,
			Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
			Code:    500,
		}, nil
	}
	deletion, free := options, false
	if len(budgets) == 1 {
		budget := budgets[0]
		if free = disruption.Free(pod, budget); free {
			deletion = atVersion(options, pod.ResourceVersion) // it may become ready meanwhile
		} else if err := e.takeDisruption(ctx, pod, budget.Name, options.DryRun); err != nil {
			return nil, err
		}
	}
	err = e.markAndDelete(ctx, pod.Name, deletion)
	switch {
	case free && apierrors.IsConflict(err) && !hasVersion(options):
		return nil, disruption.Busy(budgets[0].Name)
	case err != nil:
		return nil, err
	}
	return &metav1.Status{Status: metav1.StatusSuccess}, nil
}

// budgetsOf returns the budgets that guard a pod.
func (e evictionStore) budgetsOf(ctx context.Context, pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	page, err := e.budgets.List(ctx, storage.ListOptions{Selection: storage.Selection{Namespace: pod.Namespace, Labels: labels.Everything()}})
	if err != nil {
		return nil, err
	}
	var budgets []*policyv1.PodDisruptionBudget
	for _, item := range page.Items {
		budget := item.Copy().(*policyv1.PodDisruptionBudget)
		if disruption.Guards(budget, pod) {
			budgets = append(budgets, budget)
		}
	}
	return budgets, nil
}

// takeDisruption stores what one eviction costs the budget.
func (e evictionStore) takeDisruption(ctx context.Context, pod *corev1.Pod, name string, dryRun []string) error {
	decide := func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil {
			return nil, apierrors.NewNotFound(podDisruptionBudgets.GroupResource(), name)
		}
		budget := v.Current.Copy().(*policyv1.PodDisruptionBudget)
		if err := disruption.Take(budget, pod.Name); err != nil {
			return nil, err
		}
		return &storage.Change{Object: budget}, nil
	}
	if len(dryRun) > 0 {
		_, err := e.budgets.Preview(ctx, pod.Namespace, name, decide)
		return err
	}
	_, err := e.budgets.Write(withActor(ctx), pod.Namespace, name, decide)
	return err
}

// markAndDelete says in the pod's status why it goes, and deletes it.
func (e evictionStore) markAndDelete(ctx context.Context, name string, options *metav1.DeleteOptions) error {
	if len(options.DryRun) == 0 {
		marked, err := e.pods.write(ctx, name, nil, func(v *storage.View) (*storage.Change, error) { return e.mark(v, name, options.Preconditions) })
		if err != nil {
			return err
		}
		if hasVersion(options) {
			options = atVersion(options, marked.GetResourceVersion())
		}
	}
	_, _, err := e.pods.Delete(ctx, name, nil, options)
	return err
}

func (e evictionStore) mark(v *storage.View, name string, p *metav1.Preconditions) (*storage.Change, error) {
	if v.Current == nil {
		return nil, apierrors.NewNotFound(e.pods.kind.GroupResource(), name)
	}
	pod := v.Current.Copy().(*corev1.Pod)
	if err := checkEvicted(pod, p); err != nil {
		return nil, apierrors.NewConflict(e.pods.kind.GroupResource(), name, err)
	}
	setCondition(pod, corev1.PodCondition{
		Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
		Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
		LastTransitionTime: metav1.Now(),
	})
	return &storage.Change{Object: pod}, nil
}

func checkEvicted(pod *corev1.Pod, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	if uid := ptr.Deref(p.UID, types.UID("")); uid != "" && uid != pod.UID {
		return fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", uid, pod.UID)
	}
	if rv := ptr.Deref(p.ResourceVersion, ""); rv != "" && rv != pod.ResourceVersion {
		return fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", rv, pod.ResourceVersion)
	}
	return nil
}

// setCondition replaces a condition of the same type, or adds it.
func setCondition(pod *corev1.Pod, condition corev1.PodCondition) {
	same := func(c corev1.PodCondition) bool { return c.Type == condition.Type }
	if i := slices.IndexFunc(pod.Status.Conditions, same); i >= 0 {
		if pod.Status.Conditions[i].Status == condition.Status {
			condition.LastTransitionTime = pod.Status.Conditions[i].LastTransitionTime
		}
		pod.Status.Conditions[i] = condition
		return
	}
	pod.Status.Conditions = append(pod.Status.Conditions, condition)
}

func hasVersion(options *metav1.DeleteOptions) bool {
	return options.Preconditions != nil && options.Preconditions.ResourceVersion != nil
}

// atVersion lets the deletion succeed only if the pod is still as it was.
func atVersion(options *metav1.DeleteOptions, version string) *metav1.DeleteOptions {
	options = options.DeepCopy()
	if options.Preconditions == nil {
		options.Preconditions = &metav1.Preconditions{}
	}
	if options.Preconditions.ResourceVersion == nil || *options.Preconditions.ResourceVersion != version {
		options.Preconditions.ResourceVersion = &version
	}
	return options
}
