package kubeletconfig

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/node/util/sysctl"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"

	"github.com/setpoint-io/setpoint/agent/pods/eviction"
	"github.com/setpoint-io/setpoint/agent/pods/shutdown"
)

func duration(d *metav1.Duration) time.Duration { return value(d).Duration }

// readEviction: what evictionHard does not name is not a threshold, unless it is merged with the defaults, as upstream.
func readEviction(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	hard := c.EvictionHard
	if hard == nil || value(c.MergeDefaultEvictionSettings) {
		hard = eviction.DefaultHard()
		maps.Copy(hard, c.EvictionHard)
	}
	thresholds, err := eviction.ParseThresholds(eviction.Statements{
		Hard: hard, Soft: c.EvictionSoft, SoftGracePeriod: c.EvictionSoftGracePeriod, MinimumReclaim: c.EvictionMinimumReclaim,
	})
	if err != nil {
		return err
	}
	s.Eviction = eviction.Policy{
		Thresholds: thresholds, Transition: c.EvictionPressureTransitionPeriod.Duration, MaxGraceSeconds: int64(c.EvictionMaxPodGracePeriod),
	}
	switch {
	case s.Eviction.Transition < 0:
		return field.Invalid(field.NewPath("evictionPressureTransitionPeriod"), s.Eviction.Transition.String(), "must not be negative")
	case s.Eviction.MaxGraceSeconds < 0:
		return field.Invalid(field.NewPath("evictionMaxPodGracePeriod"), s.Eviction.MaxGraceSeconds, "must not be negative")
	case s.Eviction.Transition == 0:
		s.Eviction.Transition = eviction.DefaultTransition
	}
	return nil
}

// readReserved adds up what is reserved. Pods are kept within the rest by the runtime's group of all pods.
func readReserved(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	for _, part := range []struct {
		path *field.Path
		list map[string]string
	}{{field.NewPath("systemReserved"), c.SystemReserved}, {field.NewPath("kubeReserved"), c.KubeReserved}} {
		for _, name := range slices.Sorted(maps.Keys(part.list)) {
			if !reservable(name) {
				return field.NotSupported(part.path.Key(name), name, []string{"cpu", "memory", "ephemeral-storage", "pid"})
			}
			q, err := resource.ParseQuantity(part.list[name])
			if err != nil || q.Sign() < 0 {
				return field.Invalid(part.path.Key(name), part.list[name], "must be a quantity that is not negative")
			}
			if s.Reserved == nil {
				s.Reserved = corev1.ResourceList{}
			}
			sum := s.Reserved[corev1.ResourceName(name)]
			sum.Add(q)
			s.Reserved[corev1.ResourceName(name)] = sum
		}
	}
	if q := s.Reserved[corev1.ResourceMemory]; q.Sign() > 0 {
		s.Eviction.Thresholds = eviction.WithAllocatable(s.Eviction.Thresholds)
	}
	return nil
}

func reservable(name string) bool {
	switch corev1.ResourceName(name) {
	case corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage, "pid":
		return true
	default:
		return false
	}
}

// sysctlName is upstream's form of a name or of the beginning of names.
var sysctlName = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$`)

// readSysctls allows only parameters of namespaces that pods have of their own.
func readSysctls(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	for i, pattern := range c.AllowedUnsafeSysctls {
		path := field.NewPath("allowedUnsafeSysctls").Index(i)
		if !sysctlName.MatchString(pattern) {
			return field.Invalid(path, pattern, "must be the name of a kernel parameter, or the beginning of one and *")
		}
		name := sysctl.NormalizeName(pattern)
		if namespace, _, _ := sysctl.GetNamespace(strings.TrimSuffix(name, "*")); namespace == sysctl.UnknownNamespace {
			return field.Invalid(path, pattern, "the sysctls are not known to be namespaced")
		}
		s.UnsafeSysctls[i] = name
	}
	return nil
}

func readTaints(c *kubeletv1beta1.KubeletConfiguration, _ *Settings) error {
	for i, t := range c.RegisterWithTaints {
		path := field.NewPath("registerWithTaints").Index(i)
		if t.Key == "" {
			return field.Required(path.Child("key"), "")
		}
		effects := []corev1.TaintEffect{corev1.TaintEffectNoExecute, corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule}
		if !slices.Contains(effects, t.Effect) {
			return field.NotSupported(path.Child("effect"), t.Effect, effects)
		}
	}
	return nil
}

// readShutdown takes one time for all pods, the last part of it for critical ones, or a time for each priority.
func readShutdown(c *kubeletv1beta1.KubeletConfiguration, s *Settings) error {
	all, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	ofPriorities := c.ShutdownGracePeriodByPodPriority
	switch {
	case len(ofPriorities) > 0 && (all != 0 || critical != 0):
		return errors.New("shutdownGracePeriodByPodPriority: cannot be set with shutdownGracePeriod or shutdownGracePeriodCriticalPods")
	case all < 0 || all > 0 && all < time.Second:
		return field.Invalid(field.NewPath("shutdownGracePeriod"), all.String(), "must be either zero or at least 1s")
	case critical < 0 || critical > all || critical > 0 && critical < time.Second:
		return field.Invalid(field.NewPath("shutdownGracePeriodCriticalPods"), critical.String(),
			"must be either zero or at least 1s, and not longer than shutdownGracePeriod")
	}
	s.Shutdown = shutdown.Split(all, critical)
	for i, p := range ofPriorities {
		if p.ShutdownGracePeriodSeconds < 0 {
			return field.Invalid(field.NewPath("shutdownGracePeriodByPodPriority").Index(i).Child("shutdownGracePeriodSeconds"),
				p.ShutdownGracePeriodSeconds, "must not be negative")
		}
		s.Shutdown = append(s.Shutdown, shutdown.Period{Priority: p.Priority, Seconds: p.ShutdownGracePeriodSeconds})
	}
	return nil
}
