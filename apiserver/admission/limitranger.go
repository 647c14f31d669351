package admission

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// limitRangerAnnotation tells a user what his pod was given.
const limitRangerAnnotation = "kubernetes.io/limit-ranger"

// limitRanger fills in the resources that the LimitRanges of a namespace give by
// default, and holds pods and claims between their bounds.
type limitRanger struct {
	onWrite
	ranges objects[*corev1.LimitRange]
}

func newLimitRanger(store *storage.Store) limitRanger {
	return limitRanger{ranges: objectsOf[*corev1.LimitRange](store, corev1.SchemeGroupVersion.WithResource("limitranges"))}
}

// Admit implements admission.MutationInterface.
func (l limitRanger) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*corev1.Pod)
	if !ok || a.GetOperation() != admission.Create || !limits(a) {
		return nil
	}
	ranges, err := l.ranges.in(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	for _, r := range ranges {
		fillResources(pod, r)
	}
	return nil
}

// Validate implements admission.ValidationInterface.
func (l limitRanger) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if !limits(a) {
		return nil
	}
	ranges, err := l.ranges.in(ctx, a.GetNamespace())
	if err != nil {
		return err
	}
	for _, r := range ranges {
		if err := judgeLimits(r, a.GetObject()); err != nil {
			return admission.NewForbidden(a, err)
		}
	}
	return nil
}

// limits reports whether a request may change what an object asks for. What is being
// deleted must not be held back.
func limits(a admission.Attributes) bool {
	if old, ok := a.GetOldObject().(metav1.Object); ok && a.GetOperation() == admission.Update && old.GetDeletionTimestamp() != nil {
		return false
	}
	switch a.GetResource().GroupResource() {
	case podsResource:
		return a.GetSubresource() == "" && a.GetOperation() == admission.Create || a.GetSubresource() == "resize"
	case claimsResource:
		return a.GetSubresource() == ""
	default:
		return false
	}
}

// fillResources gives containers that name no amount the namespace's default.
func fillResources(pod *corev1.Pod, r *corev1.LimitRange) {
	requests, bounds := corev1.ResourceList{}, corev1.ResourceList{}
	for _, limit := range r.Spec.Limits {
		if limit.Type == corev1.LimitTypeContainer {
			maps.Copy(requests, limit.DefaultRequest)
			maps.Copy(bounds, limit.Default)
		}
	}
	var told []string
	for i := range pod.Spec.Containers {
		told = append(told, fillContainer(&pod.Spec.Containers[i], "container ", requests, bounds)...)
	}
	for i := range pod.Spec.InitContainers {
		told = append(told, fillContainer(&pod.Spec.InitContainers[i], "init container ", requests, bounds)...)
	}
	if len(told) > 0 {
		metav1.SetMetaDataAnnotation(&pod.ObjectMeta, limitRangerAnnotation, "LimitRanger plugin set: "+strings.Join(told, "; "))
	}
}

func fillContainer(c *corev1.Container, kind string, requests, bounds corev1.ResourceList) []string {
	var told []string
	tell := func(set []string, what string) {
		if len(set) > 0 {
			told = append(told, strings.Join(set, ", ")+" "+what+" for "+kind+c.Name)
		}
	}
	tell(fill(&c.Resources.Requests, requests), "request")
	tell(fill(&c.Resources.Limits, bounds), "limit")
	return told
}

// fill sets what is missing and names it, in order.
func fill(have *corev1.ResourceList, defaults corev1.ResourceList) []string {
	var set []string
	for name, amount := range defaults {
		if _, ok := (*have)[name]; ok {
			continue
		}
		if *have == nil {
			*have = corev1.ResourceList{}
		}
		(*have)[name] = amount.DeepCopy()
		set = append(set, string(name))
	}
	slices.Sort(set)
	return set
}

// judgeLimits says all that is wrong at once.
func judgeLimits(r *corev1.LimitRange, obj runtime.Object) error {
	var errs []error
	for _, limit := range r.Spec.Limits {
		switch o := obj.(type) {
		case *corev1.Pod:
			errs = append(errs, judgePod(limit, o)...)
		case *corev1.PersistentVolumeClaim:
			if limit.Type == corev1.LimitTypePersistentVolumeClaim {
				errs = append(errs, judgeClaim(limit, o)...)
			}
		}
	}
	return utilerrors.NewAggregate(errs)
}

func judgePod(limit corev1.LimitRangeItem, pod *corev1.Pod) []error {
	var errs []error
	switch limit.Type {
	case corev1.LimitTypeContainer:
		for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
			errs = append(errs, judgeResources(limit, c.Resources.Requests, c.Resources.Limits)...)
		}
	case corev1.LimitTypePod:
		requests := podTotal(pod, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Requests })
		bounds := podTotal(pod, func(r corev1.ResourceRequirements) corev1.ResourceList { return r.Limits })
		errs = judgeResources(limit, requests, bounds)
	}
	return errs
}

func judgeResources(limit corev1.LimitRangeItem, requests, bounds corev1.ResourceList) []error {
	var errs []error
	each := func(amounts corev1.ResourceList, judge func(amount) error) {
		for _, name := range slices.Sorted(maps.Keys(amounts)) {
			if err := judge(amount{limit.Type, name, amounts[name], requests, bounds}); err != nil {
				errs = append(errs, err)
			}
		}
	}
	each(limit.Min, amount.atLeast)
	each(limit.Max, amount.atMost)
	each(limit.MaxLimitRequestRatio, amount.atMostTimes)
	return errs
}

func judgeClaim(limit corev1.LimitRangeItem, claim *corev1.PersistentVolumeClaim) []error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(limit.Min)) {
		request, bound := claim.Spec.Resources.Requests[name], limit.Min[name]
		if request.Cmp(bound) < 0 {
			errs = append(
				errs,
				fmt.Errorf("minimum %s usage per %s is %s, but request is %s", name, limit.Type, bound.String(), request.String()),
			)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(limit.Max)) {
		request, bound := claim.Spec.Resources.Requests[name], limit.Max[name]
		if request.Cmp(bound) > 0 {
			errs = append(
				errs,
				fmt.Errorf("maximum %s usage per %s is %s, but request is %s", name, limit.Type, bound.String(), request.String()),
			)
		}
	}
	return errs
}
