package core

import (
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/kubectl/pkg/util/qos"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/podspec"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

func pods() resource.Kind[*corev1.Pod] {
	return resource.Kind[*corev1.Pod]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("Pod"),
		Plural:           "pods",
		ShortNames:       []string{"po"},
		Categories:       []string{"all"},
		New:              func() *corev1.Pod { return &corev1.Pod{} },
		NewList:          func() runtime.Object { return &corev1.PodList{} },
		Default:          podspec.DefaultPod,
		PrepareCreate:    preparePodCreate,
		PrepareUpdate:    preparePodUpdate,
		StatusResets:     []string{"spec", "metadata.deletionTimestamp", "metadata.ownerReferences"},
		PrepareStatus:    preparePodStatus,
		Validate:         validatePodCreate,
		ValidateUpdate:   validatePodUpdate,
		ValidateStatus:   validatePodStatus,
		ChangeWarnings:   podWarnings,
		Spec:             func(pod *corev1.Pod) any { return &pod.Spec },
		Status:           func(pod *corev1.Pod) any { return &pod.Status },
		Generation:       true,
		GracefulDelete:   podGracefulDelete,
		ReturnDeleted:    true,
		Columns:          podColumns(),
		Fields:           podFields,
		Parts:            podParts(),
		Subresources:     podSubresources(),
	}
}

// CompletePod sets the defaults of a pod and says what is wrong with it; nodes have pods that no request carries.
func CompletePod(pod *corev1.Pod) error {
	podspec.DefaultPod(pod)
	podspec.TakeAppArmorAnnotations(pod)
	podspec.CompletePodResources(&pod.Spec)
	return validatePodCreate(pod).ToAggregate()
}

func podSubresources() []resource.Subresource {
	stream := []string{"create", "get"}
	return []resource.Subresource{
		{Name: "attach", Kind: corev1.SchemeGroupVersion.WithKind("PodAttachOptions"), Verbs: stream},
		{Name: "binding", Kind: corev1.SchemeGroupVersion.WithKind("Binding"), Verbs: []string{"create"}},
		{Name: "eviction", Kind: policyv1.SchemeGroupVersion.WithKind("Eviction"), Verbs: []string{"create"}},
		{Name: "exec", Kind: corev1.SchemeGroupVersion.WithKind("PodExecOptions"), Verbs: stream},
		{Name: "log", Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Verbs: []string{"get"}},
		{Name: "portforward", Kind: corev1.SchemeGroupVersion.WithKind("PodPortForwardOptions"), Verbs: stream},
		proxied("PodProxyOptions"),
	}
}

// proxied is the subresource that passes any request on to what an object stands for.
func proxied(options string) resource.Subresource {
	return resource.Subresource{
		Name:  "proxy",
		Kind:  corev1.SchemeGroupVersion.WithKind(options),
		Verbs: []string{"create", "delete", "get", "patch", "update"},
	}
}

// preparePodCreate starts a pod as Pending with its quality of service, which
// never changes afterwards. A gated pod says so at once: no scheduler will.
func preparePodCreate(pod *corev1.Pod) {
	podspec.CompletePodResources(&pod.Spec)
	pod.Status = corev1.PodStatus{Phase: corev1.PodPending, QOSClass: qos.ComputePodQOS(pod)}
	// Admission may have set the name after the defaults ran.
	podspec.MirrorServiceAccount(&pod.Spec)
	podspec.ResolveMatchKeys(pod)
	podspec.TakeAppArmorAnnotations(pod)
	if len(pod.Spec.SchedulingGates) > 0 {
		pod.Status.Conditions = []corev1.PodCondition{{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonSchedulingGated,
			Message: "Scheduling is blocked due to non-empty scheduling gates", LastTransitionTime: pod.CreationTimestamp,
		}}
	}
}

// preparePodUpdate: clients that do not know resources of the whole pod leave them out.
func preparePodUpdate(pod, old *corev1.Pod) {
	podspec.MirrorServiceAccount(&pod.Spec)
	if pod.Spec.Resources == nil {
		pod.Spec.Resources = old.Spec.Resources.DeepCopy()
	}
}

// podGracefulDelete decides how long a node agent may take. A pod that never
// reached a node, or has ended, goes at once: nobody would confirm its end.
func podGracefulDelete(pod *corev1.Pod, options *metav1.DeleteOptions) bool {
	if options == nil {
		return false
	}
	seconds := ptr.Deref(pod.Spec.TerminationGracePeriodSeconds, 0)
	if options.GracePeriodSeconds != nil {
		seconds = *options.GracePeriodSeconds
	}
	if pod.Spec.NodeName == "" || ended(pod) {
		seconds = 0
	}
	if seconds < 0 {
		seconds = 1
	}
	options.GracePeriodSeconds = &seconds
	return true
}

func podFields(pod *corev1.Pod) fields.Set {
	ips := make([]string, 0, len(pod.Status.PodIPs))
	for _, ip := range pod.Status.PodIPs {
		ips = append(ips, ip.IP)
	}
	return fields.Set{
		"spec.nodeName":            pod.Spec.NodeName,
		"spec.restartPolicy":       string(pod.Spec.RestartPolicy),
		"spec.schedulerName":       pod.Spec.SchedulerName,
		"spec.serviceAccountName":  pod.Spec.ServiceAccountName,
		"spec.hostNetwork":         strconv.FormatBool(pod.Spec.HostNetwork),
		"status.phase":             string(pod.Status.Phase),
		"status.podIP":             pod.Status.PodIP,
		"status.podIPs":            strings.Join(ips, ","),
		"status.nominatedNodeName": pod.Status.NominatedNodeName,
	}
}
