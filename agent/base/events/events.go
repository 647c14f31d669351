package events

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
)

// component is the source tools expect of events about containers.
const component = "kubelet"

// Reasons of events.
const (
	Pulling                         = "Pulling"
	Pulled                          = "Pulled"
	Failed                          = "Failed"
	InspectFailed                   = "InspectFailed"
	BackOff                         = "BackOff"
	NeverPull                       = "ErrImageNeverPull"
	NoPullSecret                    = "FailedToRetrieveImagePullSecret"
	Created                         = "Created"
	Started                         = "Started"
	Killing                         = "Killing"
	Unhealthy                       = "Unhealthy"
	ProbeWarning                    = "ProbeWarning"
	FailedMount                     = "FailedMount"
	FailedNodeDeclaredFeaturesCheck = "FailedNodeDeclaredFeaturesCheck"
	FailedUnmount                   = "FailedUnMount"
	FailedCreateSandbox             = "FailedCreatePodSandBox"
	FailedPrepareDynamicResources   = "FailedPrepareDynamicResources"
	FailedUnprepareDynamicResources = "FailedUnprepareDynamicResources"
	SandboxChanged                  = "SandboxChanged"
	FailedPreStopHook               = "FailedPreStopHook"
	FailedPostStartHook             = "FailedPostStartHook"
	FailedKillPod                   = "FailedKillPod"
	DeadlineExceeded                = "DeadlineExceeded"
	Evicted                         = "Evicted"
	NodeStarting                    = "Starting"
	NodeAllocatableEnforced         = "NodeAllocatableEnforced"
	FieldNotSupported               = "FieldNotSupported"
	FieldIgnored                    = "FieldIgnored"
	ResizeDeferred                  = "ResizeDeferred"
	ResizeInfeasible                = "ResizeInfeasible"
	ResizeStarted                   = "ResizeStarted"
	ResizeCompleted                 = "ResizeCompleted"
	ResizeError                     = "ResizeError"
	DNSConfigForming                = "DNSConfigForming"
	UnsupportedCorefile             = "UnsupportedCorefile"
	IngressPortTaken                = "IngressPortTaken"
	DNSPortTaken                    = "DNSPortTaken"
	FirewallBlocksPods              = "FirewallBlocksPods"
	FirewallLetsPodsPass            = "FirewallLetsPodsPass"
	HostIPsIPFamilyMismatch         = "HostIPsIPFamilyMismatch"

	PossibleMemoryBackedVolumesOnDisk = "PossibleMemoryBackedVolumesOnDisk"
)

// Recorder records events on pods and containers.
type Recorder = record.EventRecorder

// NewRecorder records through client as the kubelet of node. It stops with ctx.
func NewRecorder(ctx context.Context, client kubernetes.Interface, node string) Recorder {
	b := record.NewBroadcaster(record.WithContext(ctx))
	b.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: client.CoreV1().Events("")})
	return b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: component, Host: node})
}

// Pod refers to pod as a whole.
func Pod(pod *corev1.Pod) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name,
		UID: pod.UID, ResourceVersion: pod.ResourceVersion,
	}
}

// Container refers to one container of pod.
func Container(pod *corev1.Pod, name string) *corev1.ObjectReference {
	ref := Pod(pod)
	ref.FieldPath = fmt.Sprintf("spec.containers{%s}", name)
	for i := range pod.Spec.InitContainers {
		if pod.Spec.InitContainers[i].Name == name {
			ref.FieldPath = fmt.Sprintf("spec.initContainers{%s}", name)
		}
	}
	for i := range pod.Spec.EphemeralContainers {
		if pod.Spec.EphemeralContainers[i].Name == name {
			ref.FieldPath = fmt.Sprintf("spec.ephemeralContainers{%s}", name)
		}
	}
	return ref
}
