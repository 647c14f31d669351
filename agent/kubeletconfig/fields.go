package kubeletconfig

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	kubeletv1beta1 "k8s.io/kubelet/config/v1beta1"
)

// honoured are the fields that do what they say, by their JSON names; what is below one is honoured too.
var honoured = []string{
	"allowedUnsafeSysctls", "authentication.webhook", "authorization.webhook",
	"clusterDNS", "clusterDomain", "containerLogMaxFiles", "containerLogMaxSize", "containerLogMonitorInterval",
	"cpuCFSQuotaPeriod", "cpuManagerPolicy", "cpuManagerPolicyOptions", "cpuManagerReconcilePeriod", "enableProfilingHandler",
	"containerRuntimeEndpoint", "crashLoopBackOff", "evictionHard", "evictionMaxPodGracePeriod", "evictionMinimumReclaim",
	"evictionPressureTransitionPeriod", "evictionSoft", "evictionSoftGracePeriod", "imageGCHighThresholdPercent",
	"imageGCLowThresholdPercent", "imageMaximumGCAge", "imageMinimumGCAge", "kubeReserved", "imagePullCredentialsVerificationPolicy",
	"preloadedImagesVerificationAllowlist", "maxParallelImagePulls", "maxPods",
	"mergeDefaultEvictionSettings", "nodeStatusMaxImages", "nodeStatusReportFrequency", "nodeStatusUpdateFrequency", "podPidsLimit",
	"memoryManagerPolicy", "reservedMemory", "reservedSystemCPUs", "podLogsDir",
	"podsPerCore", "port", "registerWithTaints", "resolvConf", "seccompDefault", "serializeImagePulls",
	"shutdownGracePeriod", "shutdownGracePeriodByPodPriority", "shutdownGracePeriodCriticalPods", "staticPodPath",
	"fileCheckFrequency", "systemReserved", "topologyManagerPolicy", "topologyManagerPolicyOptions", "topologyManagerScope",
	"userNamespaces", "volumeStatsAggPeriod",
}

// fixed are fields of which the agent takes only these values, in JSON: they say what it does.
var fixed = map[string][]string{
	"address":                          {`"0.0.0.0"`, `"::"`},
	"authentication.anonymous.enabled": {"false"},
	"authorization.mode":               {`"Webhook"`},
	"cgroupDriver":                     {`"cgroupfs"`},
	"cgroupsPerQOS":                    {"true"},
	"configMapAndSecretChangeDetectionStrategy": {`"Get"`},
	"contentType":                   {`"application/vnd.kubernetes.protobuf"`},
	"cpuCFSQuota":                   {"true"},
	"enableControllerAttachDetach":  {"false"},
	"enableDebuggingHandlers":       {"true"},
	"enableDebugFlagsHandler":       {"false"},
	"enableServer":                  {"true"},
	"enableSystemLogHandler":        {"false"},
	"enableSystemLogQuery":          {"false"},
	"enforceNodeAllocatable":        {`["pods"]`},
	"failCgroupV1":                  {"false"},
	"failSwapOn":                    {"false"},
	"hairpinMode":                   {`"promiscuous-bridge"`, `"hairpin-veth"`},
	"healthzPort":                   {"0"},
	"localStorageCapacityIsolation": {"true"},
	"makeIPTablesUtilChains":        {"false"},
	"memoryReservationPolicy":       {`"None"`},
	"memorySwap.swapBehavior":       {`"NoSwap"`},
	"oomScoreAdj":                   {"-999"},
	"registerNode":                  {"true"},
	"rotateCertificates":            {"true"},
	"serverTLSBootstrap":            {"true"},
	"singleProcessOOMKill":          {"true"},
}

// refuse names the first field that is set and that the agent does not honour.
func refuse(c *kubeletv1beta1.KubeletConfiguration) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var all map[string]any
	if err := json.Unmarshal(text, &all); err != nil {
		return err
	}
	return refuseBelow("", all)
}

func refuseBelow(path string, fields map[string]any) error {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		at := strings.TrimPrefix(path+"."+name, ".")
		if at == "kind" || at == "apiVersion" || slices.Contains(honoured, at) {
			continue
		}
		v := fields[name]
		if below, ok := v.(map[string]any); ok && len(fixed[at]) == 0 {
			if err := refuseBelow(at, below); err != nil {
				return err
			}
			continue
		}
		text, err := json.Marshal(v)
		if err != nil {
			return err
		}
		if values, ok := fixed[at]; ok && !slices.Contains(values, string(text)) || !ok && !unset(v) {
			return notHonoured(at, string(text))
		}
	}
	return nil
}

// unset are the values that a file has in place of nothing. Fields whose false or zero means something are fixed.
func unset(v any) bool { return v == nil || v == "" || v == "0s" || v == "0" || v == 0.0 || v == false }

func notHonoured(path, got string) error {
	if values := fixed[path]; len(values) > 0 {
		return fmt.Errorf("%s: %s: not supported: the agent does only %s", path, got, strings.Join(values, " or "))
	}
	return fmt.Errorf("%s: not supported: the agent has no such setting", path)
}
