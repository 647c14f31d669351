package admission

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	resourcehelper "k8s.io/component-helpers/resource"
)

// amount is one bound of a LimitRange beside what is asked for.
type amount struct {
	limitType        corev1.LimitType
	name             corev1.ResourceName
	bound            resource.Quantity
	requests, limits corev1.ResourceList
}

func (m amount) atLeast() error {
	request, asked := m.requests[m.name]
	limit, limited := m.limits[m.name]
	switch {
	case !asked:
		return fmt.Errorf("minimum %s usage per %s is %s.  No request is specified", m.name, m.limitType, m.bound.String())
	case request.Cmp(m.bound) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but request is %s", m.name, m.limitType, m.bound.String(), request.String())
	case limited && limit.Cmp(m.bound) < 0:
		return fmt.Errorf("minimum %s usage per %s is %s, but limit is %s", m.name, m.limitType, m.bound.String(), limit.String())
	}
	return nil
}

func (m amount) atMost() error {
	request, asked := m.requests[m.name]
	limit, limited := m.limits[m.name]
	switch {
	case !limited:
		return fmt.Errorf("maximum %s usage per %s is %s.  No limit is specified", m.name, m.limitType, m.bound.String())
	case limit.Cmp(m.bound) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but limit is %s", m.name, m.limitType, m.bound.String(), limit.String())
	case asked && request.Cmp(m.bound) > 0:
		return fmt.Errorf("maximum %s usage per %s is %s, but request is %s", m.name, m.limitType, m.bound.String(), request.String())
	}
	return nil
}

func (m amount) atMostTimes() error {
	request, asked := m.requests[m.name]
	limit, limited := m.limits[m.name]
	if !asked || request.IsZero() {
		return fmt.Errorf(
			"%s max limit to request ratio per %s is %s, but no request is specified or request is 0",
			m.name,
			m.limitType,
			m.bound.String(),
		)
	}
	if !limited || limit.IsZero() {
		return fmt.Errorf(
			"%s max limit to request ratio per %s is %s, but no limit is specified or limit is 0",
			m.name,
			m.limitType,
			m.bound.String(),
		)
	}
	ratio := limit.AsApproximateFloat64() / request.AsApproximateFloat64()
	if ratio > m.bound.AsApproximateFloat64() {
		return fmt.Errorf(
			"%s max limit to request ratio per %s is %s, but provided ratio is %f",
			m.name,
			m.limitType,
			m.bound.String(),
			ratio,
		)
	}
	return nil
}

// podTotal is what a pod needs as a whole, of the resources that every container
// names: without an amount there is nothing to add up.
func podTotal(pod *corev1.Pod, part func(corev1.ResourceRequirements) corev1.ResourceList) corev1.ResourceList {
	named := map[corev1.ResourceName]int{}
	for _, c := range pod.Spec.Containers {
		for name := range part(c.Resources) {
			named[name]++
		}
	}
	// What is asked for stands where PodRequests looks for it.
	asked := &corev1.Pod{Spec: corev1.PodSpec{Resources: pod.Spec.Resources}}
	for _, c := range pod.Spec.Containers {
		asked.Spec.Containers = append(
			asked.Spec.Containers,
			corev1.Container{Name: c.Name, Resources: corev1.ResourceRequirements{Requests: part(c.Resources)}},
		)
	}
	for _, c := range pod.Spec.InitContainers {
		asked.Spec.InitContainers = append(asked.Spec.InitContainers, corev1.Container{
			Name: c.Name, RestartPolicy: c.RestartPolicy, Resources: corev1.ResourceRequirements{Requests: part(c.Resources)},
		})
	}
	if pod.Spec.Resources != nil {
		asked.Spec.Resources = &corev1.ResourceRequirements{Requests: part(*pod.Spec.Resources)}
	}
	total := resourcehelper.PodRequests(asked, resourcehelper.PodResourcesOptions{})
	for name := range total {
		whole := false
		if asked.Spec.Resources != nil {
			_, whole = asked.Spec.Resources.Requests[name]
		}
		if named[name] < len(pod.Spec.Containers) && !whole {
			delete(total, name)
		}
	}
	return total
}
