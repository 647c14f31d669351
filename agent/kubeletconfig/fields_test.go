package kubeletconfig

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
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
	"memoryThrottlingFactor", "nodeLeaseDurationSeconds", "podCIDR",
	"protectKernelDefaults", "providerID", "qosReserved", "readOnlyPort", "registryBurst",
	"registryPullQPS", "runOnce", "runtimeRequestTimeout",
	"showHiddenMetricsForVersion",
	"staticPodURL", "staticPodURLHeader", "streamingConnectionIdleTimeout", "syncFrequency", "systemCgroups",
	"systemReservedCgroup", "tlsCertFile", "tlsCipherSuites", "tlsCurvePreferences", "tlsMinVersion", "tlsPrivateKeyFile",
	"tracing", "volumePluginDir",
}

// below are the fields of the honoured ones, each of which is read: a new one would be accepted and ignored.
var below = []string{
	"authentication.webhook.cacheTTL", "authentication.webhook.enabled",
	"authorization.webhook.cacheAuthorizedTTL", "authorization.webhook.cacheUnauthorizedTTL",
	"crashLoopBackOff.maxContainerRestartPeriod",
	"registerWithTaints.effect", "registerWithTaints.key", "registerWithTaints.timeAdded", "registerWithTaints.value",
	"reservedMemory.limits", "reservedMemory.numaNode",
	"shutdownGracePeriodByPodPriority.priority", "shutdownGracePeriodByPodPriority.shutdownGracePeriodSeconds",
	"userNamespaces.idsPerPod",
}

// leaves are the paths of the fields below t that have none themselves.
func leaves(path string, t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return []string{path}
	}
	var out []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			out = append(out, leaves(strings.TrimPrefix(path+"."+name, "."), f.Type)...)
		}
	}
	return out
}

// TestEveryFieldBelowAnHonouredOneIsKnown.
func TestEveryFieldBelowAnHonouredOneIsKnown(t *testing.T) {
	var got []string
	for _, path := range leaves("", reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]()) {
		if !slices.Contains(honoured, path) && slices.ContainsFunc(honoured, func(h string) bool { return strings.HasPrefix(path, h+".") }) {
			got = append(got, path)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, below) {
		t.Errorf("read what is new, and enter it in below:\n%q\n%q", got, below)
	}
}

// TestThePageNamesEveryField: docs/compatibility.md says of each field that a file may have what comes of it, and names no others.
func TestThePageNamesEveryField(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "compatibility.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n## A node's configuration\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var named []string
	for row := range strings.Lines(section) {
		fields, _, _ := strings.Cut(strings.TrimPrefix(row, "| "), " | ")
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		for _, code := range regexp.MustCompile("`([^`:]+)[^`]*`").FindAllStringSubmatch(fields, -1) {
			named = append(named, code[1])
		}
	}
	for _, path := range slices.Concat(honoured, slices.Collect(maps.Keys(fixed))) {
		if !slices.Contains(named, path) {
			t.Errorf("%s is not on the page", path)
		}
	}
	all := leaves("", reflect.TypeFor[kubeletv1beta1.KubeletConfiguration]())
	for _, name := range named {
		if !slices.ContainsFunc(all, func(path string) bool { return path == name || strings.HasPrefix(path, name+".") }) {
			t.Errorf("the page names %s, which upstream has not", name)
		}
	}
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
