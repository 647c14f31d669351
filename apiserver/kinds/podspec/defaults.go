package podspec

import (
	"github.com/distribution/reference"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
)

// defaultGraceSeconds is how long a pod may take to stop when it does not say.
const defaultGraceSeconds = 30

// DefaultPod fills what only pods get, and what their templates get too. Requests
// follow limits, links to services are on, and host ports mirror container ports.
func DefaultPod(pod *corev1.Pod) {
	Default(&pod.Spec)
	spec := &pod.Spec
	for i := range spec.Containers {
		requestsFromLimits(&spec.Containers[i].Resources)
	}
	for i := range spec.InitContainers {
		requestsFromLimits(&spec.InitContainers[i].Resources)
	}
	if *spec.TerminationGracePeriodSeconds < 0 {
		spec.TerminationGracePeriodSeconds = ptr.To[int64](1) // templates keep what they say
	}
	if spec.EnableServiceLinks == nil {
		spec.EnableServiceLinks = ptr.To(true)
	}
	if spec.HostNetwork {
		hostPorts(spec.Containers)
		hostPorts(spec.InitContainers)
	}
	defaultStatus(&pod.Status)
}

// Default fills a spec as it stands in a pod or in a template.
func Default(spec *corev1.PodSpec) {
	dropDisabled(spec)
	rule.Default(&spec.DNSPolicy, corev1.DNSClusterFirst)
	rule.Default(&spec.RestartPolicy, corev1.RestartPolicyAlways)
	rule.Default(&spec.SchedulerName, corev1.DefaultSchedulerName)
	rule.DefaultPointer(&spec.TerminationGracePeriodSeconds, defaultGraceSeconds)
	if spec.SecurityContext == nil {
		spec.SecurityContext = &corev1.PodSecurityContext{}
	}
	MirrorServiceAccount(spec)
	for i := range spec.Volumes {
		defaultVolume(&spec.Volumes[i])
	}
	visitContainers(spec, defaultContainer)
	rule.RoundUp(spec.Overhead)
	if spec.Resources != nil {
		rule.RoundUp(spec.Resources.Limits)
		rule.RoundUp(spec.Resources.Requests)
	}
}

// MirrorServiceAccount keeps the deprecated alias equal to the name, as the wire
// format of Kubernetes always had it.
func MirrorServiceAccount(spec *corev1.PodSpec) {
	rule.Default(&spec.ServiceAccountName, spec.DeprecatedServiceAccount)
	spec.DeprecatedServiceAccount = spec.ServiceAccountName
}

func defaultContainer(c *corev1.Container) {
	if c.ImagePullPolicy == "" {
		c.ImagePullPolicy = pullPolicy(c.Image)
	}
	rule.Default(&c.TerminationMessagePath, corev1.TerminationMessagePathDefault)
	rule.Default(&c.TerminationMessagePolicy, corev1.TerminationMessageReadFile)
	for i := range c.Ports {
		rule.Default(&c.Ports[i].Protocol, corev1.ProtocolTCP)
	}
	for i := range c.Env {
		defaultEnvSource(c.Env[i].ValueFrom)
	}
	rule.RoundUp(c.Resources.Limits)
	rule.RoundUp(c.Resources.Requests)
	defaultProbe(c.LivenessProbe)
	defaultProbe(c.ReadinessProbe)
	defaultProbe(c.StartupProbe)
	if c.Lifecycle != nil {
		defaultLifecycle(c.Lifecycle.PostStart)
		defaultLifecycle(c.Lifecycle.PreStop)
	}
}

// pullPolicy is Always for an image that may change under its name: tag latest,
// or neither tag nor digest. What is no name of an image cannot be pulled anyway.
func pullPolicy(image string) corev1.PullPolicy {
	named, err := reference.ParseNormalizedNamed(image)
	if err != nil {
		return corev1.PullIfNotPresent
	}
	if tagged, ok := reference.TagNameOnly(named).(reference.Tagged); ok && tagged.Tag() == "latest" {
		return corev1.PullAlways
	}
	return corev1.PullIfNotPresent
}

func defaultEnvSource(from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	defaultFieldRef(from.FieldRef)
	if from.FileKeyRef != nil {
		rule.DefaultPointer(&from.FileKeyRef.Optional, false)
	}
}

func defaultFieldRef(ref *corev1.ObjectFieldSelector) {
	if ref != nil {
		rule.Default(&ref.APIVersion, "v1")
	}
}

func defaultProbe(probe *corev1.Probe) {
	if probe == nil {
		return
	}
	rule.Default(&probe.TimeoutSeconds, 1)
	rule.Default(&probe.PeriodSeconds, 10)
	rule.Default(&probe.SuccessThreshold, 1)
	rule.Default(&probe.FailureThreshold, 3)
	defaultHTTPGet(probe.HTTPGet)
	if probe.GRPC != nil {
		rule.DefaultPointer(&probe.GRPC.Service, "")
	}
}

func defaultLifecycle(handler *corev1.LifecycleHandler) {
	if handler != nil {
		defaultHTTPGet(handler.HTTPGet)
	}
}

func defaultHTTPGet(get *corev1.HTTPGetAction) {
	if get != nil {
		rule.Default(&get.Path, "/")
		rule.Default(&get.Scheme, corev1.URISchemeHTTP)
	}
}

// requestsFromLimits: who limits a resource without asking for it asks for the limit.
func requestsFromLimits(r *corev1.ResourceRequirements) {
	for name, limit := range r.Limits {
		if _, asked := r.Requests[name]; asked {
			continue
		}
		if r.Requests == nil {
			r.Requests = corev1.ResourceList{}
		}
		r.Requests[name] = limit.DeepCopy()
	}
}

func hostPorts(containers []corev1.Container) {
	for i := range containers {
		for j := range containers[i].Ports {
			port := &containers[i].Ports[j]
			rule.Default(&port.HostPort, port.ContainerPort)
		}
	}
}
