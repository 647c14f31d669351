package kubeletconfig

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// refused are the other fields of upstream's: each needs a decision, so a new one has to be entered somewhere.
var refused = []string{
	"cgroupRoot", "containerLogMaxWorkers", "defaultPodSysctls",
	"enableContentionProfiling", "eventBurst", "eventRecordQPS", "featureGates", "healthzBindAddress",
	"httpCheckFrequency", "imageServiceEndpoint", "iptablesDropBit", "iptablesMasqueradeBit",
	"kernelMemcgNotification", "kubeAPIBurst", "kubeAPIQPS", "kubeReservedCgroup", "kubeletCgroups", "logging", "maxOpenFiles",
	"memoryThrottlingFactor", "nodeLeaseDurationSeconds", "podCIDR", "podLogsDir",
	"protectKernelDefaults", "providerID", "qosReserved", "readOnlyPort", "registryBurst",
	"registryPullQPS", "runOnce", "runtimeRequestTimeout",
	"showHiddenMetricsForVersion",
	"staticPodURL", "staticPodURLHeader", "streamingConnectionIdleTimeout", "syncFrequency", "systemCgroups",
	"systemReservedCgroup", "tlsCertFile", "tlsCipherSuites", "tlsCurvePreferences", "tlsMinVersion", "tlsPrivateKeyFile",
	"tracing", "volumePluginDir",
}

// TestEveryFieldIsDecided: upstream's fields are honoured, fixed or refused, each one of them.
func TestEveryFieldIsDecided(t *testing.T) {
	decided := slices.Clone(refused)
	for _, path := range slices.Concat(honoured, slices.Collect(maps.Keys(fixed))) {
		top, _, _ := strings.Cut(path, ".")
		if !slices.Contains(decided, top) {
			decided = append(decided, top)
		}
	}
	var upstream []string
	for f := range reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]().Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			upstream = append(upstream, name)
		}
	}
	slices.Sort(decided)
	slices.Sort(upstream)
	for _, name := range upstream {
		if !slices.Contains(decided, name) {
			t.Errorf("%s: honour it, fix it or enter it in refused", name)
		}
	}
	for i, name := range decided {
		if !slices.Contains(upstream, name) || i > 0 && decided[i-1] == name {
			t.Errorf("%s: upstream has no such field, or it is decided twice", name)
		}
	}
	for path, values := range fixed {
		for _, v := range values {
			if !json.Valid([]byte(v)) {
				t.Errorf("%s: %s is no JSON", path, v)
			}
		}
	}
}
