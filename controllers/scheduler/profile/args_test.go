package profile

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	configv1 "k8s.io/kube-scheduler/config/v1"
	"k8s.io/utils/ptr"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
)

// withArgs is a file with the args of one plugin.
func withArgs(name, args string) string {
	return "profiles:\n- pluginConfig:\n  - name: " + name + "\n    args: " + args + "\n"
}

// made is the plugin that the args make.
func made(t *testing.T, name, args string) plugin.Plugin {
	t.Helper()
	for _, p := range parsed(t, withArgs(name, args)).Profiles[0].Plugins {
		if p.Name() == name {
			return p.Plugin
		}
	}
	t.Fatalf("no %s", name)
	return nil
}

// TestArgsAreCompleted with upstream's defaults.
func TestArgsAreCompleted(t *testing.T) {
	cpuMemory := []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "memory", Weight: 1}}
	fit := func(in configv1.NodeResourcesFitArgs) plugin.Plugin { return plugins.NodeResourcesFit{Args: &in} }
	for _, tt := range []struct {
		name, args string
		want       plugin.Plugin
	}{
		{"NodeResourcesFit", "{}", fit(configv1.NodeResourcesFitArgs{ScoringStrategy: &configv1.ScoringStrategy{Type: "LeastAllocated", Resources: cpuMemory}})},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated}, ignoredResources: [example.com/a], ignoredResourceGroups: [example.org]}",
			fit(configv1.NodeResourcesFitArgs{IgnoredResources: []string{"example.com/a"}, IgnoredResourceGroups: []string{"example.org"},
				ScoringStrategy: &configv1.ScoringStrategy{Type: "MostAllocated", Resources: cpuMemory}})},
		{"NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio, resources: [{name: example.com/gpu, weight: 3}, {name: cpu}], " +
			"requestedToCapacityRatio: {shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]}}}",
			fit(configv1.NodeResourcesFitArgs{ScoringStrategy: &configv1.ScoringStrategy{
				Type: "RequestedToCapacityRatio", Resources: []configv1.ResourceSpec{{Name: "example.com/gpu", Weight: 3}, {Name: "cpu", Weight: 1}},
				RequestedToCapacityRatio: &configv1.RequestedToCapacityRatioParam{Shape: []configv1.UtilizationShapePoint{{}, {Utilization: 100, Score: 10}}}}})},
		{"NodeResourcesBalancedAllocation", "{}",
			plugins.NodeResourcesBalancedAllocation{Args: &configv1.NodeResourcesBalancedAllocationArgs{Resources: cpuMemory}}},
		{"NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: example.com/gpu, weight: 1}]}",
			plugins.NodeResourcesBalancedAllocation{Args: &configv1.NodeResourcesBalancedAllocationArgs{
				Resources: []configv1.ResourceSpec{{Name: "cpu", Weight: 1}, {Name: "example.com/gpu", Weight: 1}}}}},
		{"InterPodAffinity", "{}", plugins.InterPodAffinity{Args: &configv1.InterPodAffinityArgs{HardPodAffinityWeight: ptr.To[int32](1)}}},
		{"InterPodAffinity", "{hardPodAffinityWeight: 0, ignorePreferredTermsOfExistingPods: true}", plugins.InterPodAffinity{
			Args: &configv1.InterPodAffinityArgs{HardPodAffinityWeight: ptr.To[int32](0), IgnorePreferredTermsOfExistingPods: true}}},
		{"PodTopologySpread", "{}", plugins.PodTopologySpread{Args: &configv1.PodTopologySpreadArgs{DefaultingType: "System"}}},
		{"PodTopologySpread", "{defaultingType: List}", plugins.PodTopologySpread{Args: &configv1.PodTopologySpreadArgs{DefaultingType: "List"}}},
		{"VolumeBinding", "{shape: [{utilization: 50, score: 5}]}", plugins.VolumeBinding{Shape: []configv1.UtilizationShapePoint{{Utilization: 50, Score: 5}}}},
	} {
		t.Run(tt.name+" "+tt.args, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, made(t, tt.name, tt.args)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestArgsOfTheScheduler(t *testing.T) {
	for args, want := range map[string]Preemption{
		"{}": {NodesPercent: 10, NodesAbsolute: 100}, "{minCandidateNodesAbsolute: 5}": {NodesPercent: 10, NodesAbsolute: 5},
		"{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 1}": {NodesAbsolute: 1}, "{minCandidateNodesPercentage: 100}": {NodesPercent: 100, NodesAbsolute: 100},
	} {
		if got := *parsed(t, withArgs("DefaultPreemption", args)).Profiles[0].Preemption; got != want {
			t.Errorf("%s: %+v, want %+v", args, got, want)
		}
	}
	for args, want := range map[string]time.Duration{"{}": 10 * time.Minute, "{bindTimeoutSeconds: 0}": 0, "{bindTimeoutSeconds: 90}": 90 * time.Second} {
		if got := parsed(t, withArgs("VolumeBinding", args)).Profiles[0].VolumeWaitMax; got != want {
			t.Errorf("%s: %v, want %v", args, got, want)
		}
	}
}

func TestArgsThatAreRefused(t *testing.T) {
	shape := func(points string) string {
		return "{scoringStrategy: {type: RequestedToCapacityRatio, requestedToCapacityRatio: {shape: [" + points + "]}}}"
	}
	spread := func(constraint string) string {
		return "{defaultingType: List, defaultConstraints: [" + constraint + "]}"
	}
	for _, tt := range []struct{ plugin, args, want string }{
		{"Mine", "{}", `name: not supported: "Mine" is not one of upstream's plugins`},
		{"NodeName", "{}", "args: not supported: NodeName takes no args"},
		{"NodeResourcesFit", "", "args: Required value: without args the plugin need not be listed"},
		{"NodeResourcesFit", "{kind: NodeAffinityArgs, apiVersion: kubescheduler.config.k8s.io/v1}", `args.kind: Unsupported value: "NodeAffinityArgs": supported values: "NodeResourcesFitArgs"`},
		{"NodeResourcesFit", "{ignored: [a]}", `args: strict decoding error: unknown field "ignored"`},
		{"NodeResourcesFit", "{ignoredResources: [cpu]}", `args.ignoredResources[0]: Invalid value: "cpu": only extended resources can be ignored`},
		{"NodeResourcesFit", "{ignoredResources: [kubernetes.io/a]}", `args.ignoredResources[0]: Invalid value: "kubernetes.io/a": only extended resources can be ignored`},
		{"NodeResourcesFit", "{ignoredResourceGroups: [a.b/c]}", `args.ignoredResourceGroups[0]: Invalid value: "a.b/c": a group has no /`},
		{"NodeResourcesFit", "{scoringStrategy: {type: Best}}", `args.scoringStrategy.type: Unsupported value: "Best": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`},
		{"NodeResourcesFit", "{scoringStrategy: {}}", `args.scoringStrategy.type: Unsupported value: "": supported values: "LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"`},
		{"NodeResourcesFit", "{scoringStrategy: {type: RequestedToCapacityRatio}}", "args.scoringStrategy.requestedToCapacityRatio: Required value: the strategy needs a shape"},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, requestedToCapacityRatio: {}}}", "args.scoringStrategy.requestedToCapacityRatio: Forbidden: the strategy is another one"},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 101}]}}", "args.scoringStrategy.resources[0].weight: Invalid value: 101: must be 1 to 100"},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: -1}]}}", "args.scoringStrategy.resources[0].weight: Invalid value: -1: must be 1 to 100"},
		{"NodeResourcesFit", "{scoringStrategy: {type: MostAllocated, resources: [{weight: 1}]}}", "args.scoringStrategy.resources[0].name: Required value"},
		{"NodeResourcesFit", shape(""), "args.scoringStrategy.requestedToCapacityRatio.shape: Required value: at least one point"},
		{"NodeResourcesFit", shape("{utilization: 101, score: 0}"), "args.scoringStrategy.requestedToCapacityRatio.shape[0].utilization: Invalid value: 101: must be 0 to 100"},
		{"NodeResourcesFit", shape("{utilization: 0, score: 11}"), "args.scoringStrategy.requestedToCapacityRatio.shape[0].score: Invalid value: 11: must be 0 to 10"},
		{"NodeResourcesFit", shape("{utilization: 9, score: 1}, {utilization: 9, score: 2}"), "args.scoringStrategy.requestedToCapacityRatio.shape[1].utilization: Invalid value: 9: must be larger than that of the point before"},
		{"NodeResourcesBalancedAllocation", "{resources: [{name: cpu, weight: 2}]}", "args.resources[0].weight: Invalid value: 2: must be 1"},
		{"NodeResourcesBalancedAllocation", "{resources: [{name: cpu}, {name: cpu}]}", `args.resources[1].name: Duplicate value: "cpu"`},
		{"InterPodAffinity", "{hardPodAffinityWeight: 101}", "args.hardPodAffinityWeight: Invalid value: 101: must be 0 to 100"},
		{"PodTopologySpread", "{defaultingType: Mine}", `args.defaultingType: Unsupported value: "Mine": supported values: "System", "List"`},
		{"PodTopologySpread", "{defaultConstraints: [{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}]}", `args.defaultingType: Invalid value: "System": must be List if there are defaultConstraints`},
		{"PodTopologySpread", spread("{maxSkew: 0, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"), "args.defaultConstraints[0].maxSkew: Invalid value: 0: must be 1 or more"},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: '', whenUnsatisfiable: DoNotSchedule}"), "args.defaultConstraints[0].topologyKey: Required value"},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: Never}"), `args.defaultConstraints[0].whenUnsatisfiable: Unsupported value: "Never": supported values: "DoNotSchedule", "ScheduleAnyway"`},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, labelSelector: {}}"), "args.defaultConstraints[0].labelSelector: Forbidden: a default is about the pods of the same services and owner"},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, matchLabelKeys: [a]}"), "args.defaultConstraints[0].matchLabelKeys: Forbidden: a default is about the pods of the same services and owner"},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, minDomains: 2}"), "args.defaultConstraints[0].minDomains: Invalid value: 2: needs whenUnsatisfiable: DoNotSchedule"},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule, nodeTaintsPolicy: Maybe}"), `args.defaultConstraints[0].nodeTaintsPolicy: Unsupported value: "Maybe": supported values: "Honor", "Ignore"`},
		{"PodTopologySpread", spread("{maxSkew: 1, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}, {maxSkew: 2, topologyKey: zone, whenUnsatisfiable: DoNotSchedule}"), `args.defaultConstraints[1]: Duplicate value: "zone, DoNotSchedule"`},
		{"NodeAffinity", "{addedAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Is}]}]}}}", `args.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].operator: Unsupported value: "Is": supported values: "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"`},
		{"DefaultPreemption", "{minCandidateNodesPercentage: 101}", "args.minCandidateNodesPercentage: Invalid value: 101: must be 0 to 100"},
		{"DefaultPreemption", "{minCandidateNodesAbsolute: -1}", "args.minCandidateNodesAbsolute: Invalid value: -1: must be 0 or more"},
		{"DefaultPreemption", "{minCandidateNodesPercentage: 0, minCandidateNodesAbsolute: 0}", "args.minCandidateNodesAbsolute: Invalid value: 0: must not be 0 if minCandidateNodesPercentage is"},
		{"VolumeBinding", "{bindTimeoutSeconds: -1}", "args.bindTimeoutSeconds: Invalid value: -1: must be 0 to 86400"},
		{"VolumeBinding", "{shape: [{utilization: 0, score: 11}]}", "args.shape[0].score: Invalid value: 11: must be 0 to 10"},
		{"DynamicResources", "{filterTimeout: -5s}", `args.filterTimeout: Invalid value: "-5s": must be zero or positive`},
		{"DynamicResources", "{bindingTimeout: 500ms}", `args.bindingTimeout: Invalid value: "500ms": must be at least 1 second`},
	} {
		t.Run(tt.plugin+" "+tt.args, func(t *testing.T) {
			_, err := Parse([]byte(header + withArgs(tt.plugin, tt.args)))
			want := "profiles[0].pluginConfig[0]." + tt.want
			if err == nil || err.Error() != want || strings.Contains(err.Error(), "\n") {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}
