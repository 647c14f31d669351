package kubeletconfig

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

func TestWhatIsRefusedIsNamed(t *testing.T) {
	for _, c := range []struct{ yaml, want string }{
		{"runOnce: true", "runOnce: not supported: the agent has no such setting"},
		{"hairpinMode: none", `hairpinMode: "none": not supported: the agent does only "promiscuous-bridge" or "hairpin-veth"`},
		{"enableServer: false", "enableServer: false: not supported: the agent does only true"},
		{"featureGates: {InPlacePodVerticalScaling: true}", "featureGates.InPlacePodVerticalScaling: not supported: the agent has no such setting"},
		{"authentication: {x509: {clientCAFile: /etc/ca}}", "authentication.x509.clientCAFile: not supported: the agent has no such setting"},
		{"enforceNodeAllocatable: [pods, kube-reserved]",
			`enforceNodeAllocatable: ["pods","kube-reserved"]: not supported: the agent does only ["pods"]`},
		{"memorySwap: {swapBehavior: LimitedSwap}", `memorySwap.swapBehavior: "LimitedSwap": not supported: the agent does only "NoSwap"`},
		{"maxPods: -1", "maxPods: -1: must not be negative"},
		{"maxPods: many", "json: cannot unmarshal string into Go struct field KubeletConfiguration.maxPods of type int32"},
		{"maxPodz: 1", `unknown field "maxPodz"`},
		{"evictionSoft: {memory.available: 1Gi}", "evictionSoft[memory.available]: grace period must be specified"},
		{"evictionMaxPodGracePeriod: -1", "evictionMaxPodGracePeriod: Invalid value: -1"},
		{"imageGCHighThresholdPercent: 70", "imageGCHighThresholdPercent and its siblings: the low threshold"},
		{"containerLogMaxFiles: 1", "containerLogMaxFiles: 1: must be greater than 1"},
		{"containerLogMaxSize: big", "containerLogMaxSize: Invalid value"},
		{"containerLogMonitorInterval: 1s", "containerLogMonitorInterval: 1s: must be 3s or longer"},
		{"podLogsDir: logs", `podLogsDir: Invalid value: "logs": must be absolute path`},
		{"podLogsDir: /var/../logs", `podLogsDir: Invalid value: "/var/../logs": must be normalized`},
		{"podLogsDir: /var/lög", "must contain ASCII characters only"},
		{"systemReserved: {disk: 1}", "systemReserved[disk]: Unsupported value"},
		{"kubeReserved: {cpu: -1}", "kubeReserved[cpu]: Invalid value"},
		{"imagePullCredentialsVerificationPolicy: Sometimes", `imagePullCredentialsVerificationPolicy: "Sometimes": must be NeverVerify`},
		{"maxParallelImagePulls: 0", "maxParallelImagePulls: Invalid value: 0"},
		{"serializeImagePulls: true\nmaxParallelImagePulls: 2", "maxParallelImagePulls: Invalid value: 2"},
		{"allowedUnsafeSysctls: [kernel.core_pattern]", "allowedUnsafeSysctls[0]: Invalid value"},
		{"allowedUnsafeSysctls: ['net.*.x']", "allowedUnsafeSysctls[0]: Invalid value"},
		{"registerWithTaints: [{key: a, effect: Maybe}]", "registerWithTaints[0].effect: Unsupported value"},
		{"authorization: {mode: AlwaysAllow}", `authorization.mode: "AlwaysAllow": not supported`},
		{"authentication: {anonymous: {enabled: true}}", "authentication.anonymous.enabled: true: not supported"},
		{"authentication: {webhook: {cacheTTL: -1s}}", "authentication.webhook.cacheTTL: -1s: must not be negative"},
		{"cpuCFSQuotaPeriod: 500us", "cpuCFSQuotaPeriod: 500µs: must be from 1ms to 1s"},
		{"cpuCFSQuotaPeriod: 2s", "cpuCFSQuotaPeriod: 2s: must be from 1ms to 1s"},
		{"memoryThrottlingFactor: 0.9", "memoryThrottlingFactor: not supported: the agent has no such setting"},
		{"memoryReservationPolicy: TieredReservation", `memoryReservationPolicy: "TieredReservation": not supported: the agent does only "None"`},
		{"enableSystemLogQuery: true", "enableSystemLogQuery: true: not supported: the agent does only false"},
		{"crashLoopBackOff: {maxContainerRestartPeriod: 10m}", "crashLoopBackOff.maxContainerRestartPeriod: 10m0s: must be from 1s to 5m"},
	} {
		if _, err := Parse([]byte(head + c.yaml)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %s", c.yaml, err, c.want)
		}
	}
	for _, text := range []string{"", "kind: KubeletConfiguration", "apiVersion: v1\nkind: Pod", strings.Repeat("#", fileSizeMax+1)} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%.40q was read", text)
		}
	}
}

// TestAFileOfAnInstallerIsTaken: its zeros are as good as nothing.
func TestAFileOfAnInstallerIsTaken(t *testing.T) {
	s, err := Parse([]byte(head + `
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: false}, x509: {}}
authorization: {webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: cgroupfs
clusterDNS: [10.96.0.10]
clusterDomain: cluster.local
containerRuntimeEndpoint: ""
cpuManagerReconcilePeriod: 0s
crashLoopBackOff: {}
evictionPressureTransitionPeriod: 0s
fileCheckFrequency: 0s
imageMaximumGCAge: 0s
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}, text: {infoBufferSize: "0"}}, verbosity: 0}
memorySwap: {}
rotateCertificates: true
shutdownGracePeriod: 0s
syncFrequency: 0s
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.Eviction.Transition != 5*time.Minute || len(s.Eviction.Thresholds) != 5 || s.ClusterDNS[0] != "10.96.0.10" || s.Images.HighPercent != 85 {
		t.Errorf("%+v", s)
	}
}

func TestWhatAFileSaysIsMeant(t *testing.T) {
	s, err := Parse([]byte(head + `
maxPods: 20
evictionHard: {memory.available: 200Mi}
mergeDefaultEvictionSettings: true
systemReserved: {cpu: 100m, memory: 1Gi}
kubeReserved: {cpu: 200m, memory: 1Gi, pid: "100"}
containerLogMaxSize: 1Mi
containerLogMaxFiles: 3
podLogsDir: /data/logs/
podPidsLimit: 64
allowedUnsafeSysctls: [net/core/somaxconn, 'kernel.msg*']
maxParallelImagePulls: 3
nodeStatusUpdateFrequency: 30s
seccompDefault: false
cpuCFSQuotaPeriod: 20ms
memoryReservationPolicy: None
enableProfilingHandler: false
authentication: {webhook: {enabled: false, cacheTTL: 1m}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 2m, cacheUnauthorizedTTL: 3s}}
`))
	if err != nil {
		t.Fatal(err)
	}
	if s.MaxPods != 20 || s.LogSizeMaxBytes != 1<<20 || s.LogFilesMax != 3 || s.PodPIDsMax != 64 || s.PullsMax != 3 || s.ReservedPIDs() != 100 {
		t.Errorf("%+v", s)
	}
	if s.StatusReportEvery != 30*time.Second || s.QuotaPeriod != 20*time.Millisecond || s.SeccompDefault || s.UnsafeSysctls[0] != "net.core.somaxconn" || len(s.UnsafeSysctls) != 2 {
		t.Errorf("%+v", s)
	}
	if !s.NoTokens || s.TokenTTL != time.Minute || s.AllowedTTL != 2*time.Minute || s.DeniedTTL != 3*time.Second {
		t.Errorf("%+v", s)
	}
	in := s.Effective()
	if s.PodLogsDir != "/data/logs" || in.PodLogsDir != s.PodLogsDir {
		t.Errorf("logs of pods in %q, shown %q", s.PodLogsDir, in.PodLogsDir)
	}
	if !s.NoProfiles || *in.EnableProfilingHandler || !*Default().Effective().EnableProfilingHandler {
		t.Error("profiles are not turned off, or are by default")
	}
	if *in.Authentication.Webhook.Enabled || in.Authorization.Mode != "Webhook" || !*Default().Effective().Authentication.Webhook.Enabled {
		t.Errorf("in force: %+v, %+v", in.Authentication, in.Authorization)
	}
	if in.MaxPods != 20 || in.EvictionHard["memory.available"] != "200Mi" || in.EvictionHard["nodefs.available"] != "10%" || len(in.EvictionHard) != 5 ||
		*in.ImageGCHighThresholdPercent != 85 || in.SystemReserved["cpu"] != "100m" || *in.SeccompDefault || in.Kind != "KubeletConfiguration" {
		t.Errorf("in force: %+v", in)
	}
	if len(s.Eviction.Thresholds) != 6 { // five, and that of what pods can have of the memory
		t.Errorf("thresholds %+v", s.Eviction.Thresholds)
	}
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("2"), corev1.ResourceMemory: resource.MustParse("4Gi"), corev1.ResourceEphemeralStorage: resource.MustParse("10Gi"),
	}
	got := s.Allocatable(capacity)
	for name, want := range map[corev1.ResourceName]string{"cpu": "1700m", "memory": "1848Mi", "ephemeral-storage": "9663676400"} {
		q := got[name]
		if q.Cmp(resource.MustParse(want)) != 0 {
			t.Errorf("allocatable %s: %s, want %s", name, q.String(), want)
		}
	}
}

// TestWithoutAFileTheDefaultsAreInForce, and soft thresholds are shown with their periods.
func TestWithoutAFileTheDefaultsAreInForce(t *testing.T) {
	if in := Default().Effective(); in.MaxPods != 110 || in.EvictionHard["imagefs.available"] != "15%" || in.EvictionSoft != nil {
		t.Errorf("%+v", in)
	}
	s, err := Parse([]byte(head + "evictionSoft: {memory.available: 1Gi}\nevictionSoftGracePeriod: {memory.available: 90s}"))
	if err != nil {
		t.Fatal(err)
	}
	if !s.SeccompDefault || !*Default().Effective().SeccompDefault {
		t.Error("containers have no seccomp profile by default")
	}
	if in := s.Effective(); in.EvictionSoft["memory.available"] != "1Gi" || in.EvictionSoftGracePeriod["memory.available"] != "1m30s" {
		t.Errorf("%+v", in)
	}
}
