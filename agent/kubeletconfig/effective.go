package kubeletconfig

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/agent/pods/eviction"
)

// Effective is the configuration in force, whether it comes from a file, from flags or from nowhere: what /configz shows. What
// Settings does not hold is as the file says.
func (s Settings) Effective() kubeletv1beta1.KubeletConfiguration {
	c := *s.file.DeepCopy()
	c.TypeMeta = metav1.TypeMeta{APIVersion: kubeletv1beta1.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"}
	c.MaxPods = int32(s.MaxPods)
	if c.MaxPods == 0 {
		c.MaxPods = maxPodsDefault
	}
	c.PodLogsDir = s.PodLogsDir
	c.EnableProfilingHandler = ptr.To(!s.NoProfiles)
	c.SeccompDefault = ptr.To(s.SeccompDefault)
	c.Authentication.Anonymous.Enabled, c.Authentication.Webhook.Enabled = ptr.To(false), ptr.To(!s.NoTokens)
	c.Authorization.Mode = kubeletv1beta1.KubeletAuthorizationModeWebhook
	c.ImageGCHighThresholdPercent, c.ImageGCLowThresholdPercent = ptr.To(int32(s.Images.HighPercent)), ptr.To(int32(s.Images.LowPercent))
	c.ImageMinimumGCAge.Duration, c.ImageMaximumGCAge.Duration = s.Images.MinAge, s.Images.MaxAge
	s.showPinning(&c)
	c.EvictionPressureTransitionPeriod.Duration, c.EvictionMaxPodGracePeriod = s.Eviction.Transition, int32(s.Eviction.MaxGraceSeconds)
	c.EvictionHard, c.EvictionSoft, c.EvictionSoftGracePeriod = map[string]string{}, nil, nil
	for _, t := range s.Eviction.Thresholds {
		switch {
		case t.Signal == eviction.AllocatableMemoryAvailable: // it follows another one
		case t.Grace == 0:
			c.EvictionHard[string(t.Signal)] = amount(t.Value)
		default:
			put(&c.EvictionSoft, string(t.Signal), amount(t.Value))
			put(&c.EvictionSoftGracePeriod, string(t.Signal), t.Grace.String())
		}
	}
	return c
}

func put(m *map[string]string, key, value string) {
	if *m == nil {
		*m = map[string]string{}
	}
	(*m)[key] = value
}

func amount(a eviction.Amount) string {
	if a.Quantity != nil {
		return a.Quantity.String()
	}
	return fmt.Sprintf("%.6g%%", a.Fraction*100)
}
