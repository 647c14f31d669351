package explain

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// service explains why nobody answers at a Service: no pod is selected, none is ready, or none has the port.
func (e *explainer) service(name Object, service *corev1.Service) finding {
	f, selector := finding{}, service.Spec.Selector
	e.failing(&f, name)
	const fails = ", and a control loop fails at it"
	switch {
	case service.Spec.Type == corev1.ServiceTypeExternalName:
		f.clear(name, "it is another name for %s", service.Spec.ExternalName)
		return f.conclude(name.String()+" has no endpoints of its own"+fails, name.String()+" has no endpoints of its own")
	case len(selector) == 0:
		f.clear(name, "it has no selector, so somebody else makes its endpoints")
		return f.conclude(name.String()+" selects no pods"+fails, name.String()+" selects no pods")
	}
	var selected, others []*corev1.Pod
	for _, pod := range list[*corev1.Pod](e, Pods, name.Namespace) {
		switch {
		case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		case labels.SelectorFromSet(selector).Matches(labels.Set(pod.Labels)):
			selected = append(selected, pod)
		default:
			others = append(others, pod)
		}
	}
	if len(selected) == 0 {
		e.selectsNone(&f, name, selector, others)
		return f.conclude(name.String()+" has no endpoints: no pod has the labels of its selector", "")
	}
	ready := slices.DeleteFunc(slices.Clone(selected), func(pod *corev1.Pod) bool { return !isReady(pod) || pod.DeletionTimestamp != nil })
	if len(ready) < len(selected) && !service.Spec.PublishNotReadyAddresses {
		e.podsOf(&f, selected)
	}
	e.namedPorts(&f, name, service, selected)
	for _, other := range firstOf(others) {
		f.clear(Pods.of(other), "the Service does not select it")
	}
	return f.conclude(
		fmt.Sprintf("%s has endpoints of %d of the %d pods that it selects", name, len(ready), len(selected)),
		fmt.Sprintf("%s has endpoints of all %d pods that it selects", name, len(selected)),
	)
}

// selectsNone names the pod that comes closest, with the labels that it lacks.
func (e *explainer) selectsNone(f *finding, name Object, selector map[string]string, others []*corev1.Pod) {
	cause := Cause{Object: name, What: "no pod has the labels " + labels.Set(selector).String(), Change: "make pods with these labels, or change the selector"}
	var closest *corev1.Pod
	for _, pod := range others {
		if met := common(selector, pod.Labels); met > 0 && (closest == nil || met > common(selector, closest.Labels)) {
			closest = pod
		}
	}
	if closest != nil {
		for _, key := range sortedKeys(selector) {
			if value, has := closest.Labels[key]; value != selector[key] {
				cause.Causes = append(cause.Causes, Cause{Object: Pods.of(closest), What: lacks(key, selector[key], value, has)})
			}
		}
	}
	f.blame(cause)
	for _, pod := range firstOf(others) {
		if closest == nil || pod.UID != closest.UID {
			f.clear(Pods.of(pod), "it has none of these labels, or fewer than another pod")
		}
	}
}

// common is how many labels of the selector a pod has.
func common(selector, of map[string]string) (n int) {
	for key, value := range selector {
		if got, has := of[key]; has && got == value {
			n++
		}
	}
	return n
}

func lacks(key, wanted, value string, has bool) string {
	if !has {
		return fmt.Sprintf("it comes closest, and lacks the label %s=%s", key, wanted)
	}
	return fmt.Sprintf("it comes closest, and has the label %s=%s, where the selector has %s=%s", key, value, key, wanted)
}

// namedPorts blames ports that no container has a name for: such a pod has no endpoint for them.
func (e *explainer) namedPorts(f *finding, name Object, service *corev1.Service, selected []*corev1.Pod) {
	for _, port := range service.Spec.Ports {
		if port.TargetPort.Type != intstr.String || slices.ContainsFunc(selected, func(pod *corev1.Pod) bool { return hasPort(pod, port) }) {
			continue
		}
		f.blame(Cause{
			Object: name, What: fmt.Sprintf("its port %d leads to a container port named %q, and no container of its pods has one", port.Port, port.TargetPort.StrVal),
			Change: "give the containers' port that name, or use its number as targetPort",
		})
	}
}

func hasPort(pod *corev1.Pod, port corev1.ServicePort) bool {
	return slices.ContainsFunc(slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers), func(c corev1.Container) bool {
		return slices.ContainsFunc(c.Ports, func(p corev1.ContainerPort) bool {
			return p.Name == port.TargetPort.StrVal && protocol(p.Protocol) == protocol(port.Protocol)
		})
	})
}

// protocol is TCP if none is named.
func protocol(p corev1.Protocol) corev1.Protocol {
	if p == "" {
		return corev1.ProtocolTCP
	}
	return p
}
