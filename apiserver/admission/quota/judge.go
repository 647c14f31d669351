package quota

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	quotav1 "k8s.io/apiserver/pkg/quota/v1"
)

// judge refuses what is more than a quota has left. Giving back is never refused,
// even by a quota that is exceeded since its limits were lowered.
func judge(q *corev1.ResourceQuota, delta corev1.ResourceList, w Write) error {
	if w.Status || w.Obj == nil {
		return nil
	}
	requested := corev1.ResourceList{}
	for name, amount := range delta {
		if amount.Sign() > 0 {
			requested[name] = amount
		}
	}
	names := quotav1.ResourceNames(requested)
	after := quotav1.Mask(quotav1.Add(q.Status.Used, requested), names)
	fits, exceeded := quotav1.LessThanOrEqual(after, q.Status.Hard)
	if fits {
		return nil
	}
	return forbidden(w, fmt.Errorf("exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
		show(quotav1.Mask(requested, exceeded)), show(quotav1.Mask(q.Status.Used, exceeded)), show(quotav1.Mask(q.Status.Hard, exceeded))))
}

func forbidden(w Write, why error) error {
	return apierrors.NewForbidden(w.Kind.GroupResource(), w.about().GetName(), why)
}

// show lists amounts as upstream does, by name.
func show(list corev1.ResourceList) string {
	names := make([]string, 0, len(list))
	for name := range list {
		names = append(names, string(name))
	}
	slices.Sort(names)
	parts := make([]string, len(names))
	for i, name := range names {
		amount := list[corev1.ResourceName(name)]
		parts[i] = name + "=" + amount.String()
	}
	return strings.Join(parts, ",")
}

// constrain refuses a pod that does not say how much it needs of what is limited.
func (m meter) constrain(q *corev1.ResourceQuota, limited []corev1.ResourceName, w Write) error {
	pod, isPod := w.Obj.(*corev1.Pod)
	if !isPod {
		return nil
	}
	missing := map[corev1.ResourceName][]string{}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		said := computeUsage(c.Resources.Requests, c.Resources.Limits)
		for _, name := range limited {
			if _, ok := said[name]; !ok && mustBeSaid[name] {
				missing[name] = append(missing[name], c.Name)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	var parts []string
	for name, containers := range missing {
		slices.Sort(containers)
		parts = append(parts, fmt.Sprintf("%s for: %s", name, strings.Join(slices.Compact(containers), ",")))
	}
	slices.Sort(parts)
	return forbidden(w, fmt.Errorf("failed quota: %s: %w", q.Name, errors.New("must specify "+strings.Join(parts, "; "))))
}

var mustBeSaid = map[corev1.ResourceName]bool{
	corev1.ResourceCPU: true, corev1.ResourceMemory: true,
	corev1.ResourceRequestsCPU: true, corev1.ResourceRequestsMemory: true,
	corev1.ResourceLimitsCPU: true, corev1.ResourceLimitsMemory: true,
}
