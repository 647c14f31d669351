package profile

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestResolve: the expected lists follow from upstream's rules (framework/runtime, expandMultiPointPlugins).
func TestResolve(t *testing.T) {
	replaced := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(upstreamProfile) }
	for _, tt := range []struct{ name, plugins, want string }{
		{"a score is disabled", "score: {disabled: [{name: NodeResourcesFit}]}", replaced("NodeResourcesFit:fs1", "NodeResourcesFit:f")},
		{"a plugin that only scores is disabled", "score: {disabled: [{name: ImageLocality}]}", replaced("ImageLocality:s1 ", "")},
		{"a filter is disabled", "filter: {disabled: [{name: TaintToleration}]}", replaced("TaintToleration:fs3", "TaintToleration:s3")},
		{"all scores are disabled", "preScore: {disabled: [{name: '*'}]}\nscore: {disabled: [{name: '*'}]}",
			replaced(":fs1", ":f", ":fs2", ":f", ":fs3", ":f", "NodeResourcesBalancedAllocation:s1 ", "", "ImageLocality:s1 ", "")},
		{"one score of all", "score: {disabled: [{name: '*'}], enabled: [{name: NodeAffinity, weight: 7}]}",
			replaced(":fs1", ":f", "NodeAffinity:fs2", "NodeAffinity:fs7", ":fs2", ":f", ":fs3", ":f", "NodeResourcesBalancedAllocation:s1 ", "", "ImageLocality:s1 ", "")},
		{"a plugin is disabled everywhere", "multiPoint: {disabled: [{name: InterPodAffinity}]}", replaced("InterPodAffinity:fs2 ", "")},
		{"disabled everywhere, enabled at one point", "multiPoint: {disabled: [{name: ImageLocality}]}\nscore: {enabled: [{name: ImageLocality, weight: 4}]}",
			replaced("ImageLocality:s1", "ImageLocality:s4")},
		{"disabled and enabled", "multiPoint: {disabled: [{name: NodeName}], enabled: [{name: NodeName}]}", upstreamProfile},
		{"a weight at score", "score: {enabled: [{name: NodeResourcesFit, weight: 5}]}", replaced("NodeResourcesFit:fs1", "NodeResourcesFit:fs5")},
		{"a weight everywhere", "multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}", replaced("NodeAffinity:fs2", "NodeAffinity:fs9")},
		{"score before multiPoint", "multiPoint: {enabled: [{name: NodeAffinity, weight: 9}]}\nscore: {enabled: [{name: NodeAffinity, weight: 8}]}",
			replaced("NodeAffinity:fs2", "NodeAffinity:fs8")},
		{"no weight is 1", "score: {enabled: [{name: NodeAffinity}, {name: TaintToleration, weight: 0}]}",
			replaced("NodeAffinity:fs2", "NodeAffinity:fs1", "TaintToleration:fs3", "TaintToleration:fs1")},
		{"no preemption", "postFilter: {disabled: [{name: '*'}]}", replaced(" preempts", "")},
		{"no preemption anywhere", "multiPoint: {disabled: [{name: DefaultPreemption}]}", replaced(" preempts", "")},
		{"what does not exist is disabled", "multiPoint: {disabled: [{name: GangScheduling}]}\nplacementScore: {disabled: [{name: '*'}]}", upstreamProfile},
		{"only what must be", "multiPoint: {disabled: [{name: '*'}], enabled: [{name: PrioritySort}, {name: SchedulingGates}, {name: DefaultBinder}, " +
			"{name: VolumeBinding}, {name: DynamicResources}, {name: NodeResourcesFit}]}", "NodeResourcesFit:fs1 VolumeBinding:fs1 DynamicResources:fs1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			config := parsed(t, "profiles:\n- plugins:\n    "+strings.ReplaceAll(tt.plugins, "\n", "\n    "))
			if diff := cmp.Diff(tt.want, listed(config.Profiles[0])); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestPluginsThatAreRefused(t *testing.T) {
	const path = "profiles[0].plugins."
	for _, tt := range []struct{ name, plugins, want string }{
		{"out of tree", "filter: {enabled: [{name: Mine}]}", `filter.enabled[0].name: not supported: "Mine" is not one of upstream's plugins`},
		{"out of tree, disabled", "score: {disabled: [{name: Mine}]}", `score.disabled[0].name: not supported: "Mine" is not one of upstream's plugins`},
		{"not here", "multiPoint: {enabled: [{name: GangScheduling}]}", "multiPoint.enabled[0].name: not supported: GangScheduling does not exist in Setpoint"},
		{"removed upstream", "filter: {enabled: [{name: EBSLimits}]}", `filter.enabled[0].name: not supported: "EBSLimits" is not one of upstream's plugins`},
		{"wrong point", "score: {enabled: [{name: NodeName}]}", "score.enabled[0].name: not supported: NodeName does not act at score"},
		{"permit", "permit: {enabled: [{name: NodeName}]}", "permit.enabled[0].name: not supported: NodeName does not act at permit"},
		{"twice", "filter: {enabled: [{name: NodeName}, {name: NodeName}]}", `filter.enabled[1].name: Duplicate value: "NodeName"`},
		{"weight of a filter", "filter: {enabled: [{name: NodeAffinity, weight: 2}]}", "filter.enabled[0].weight: not supported: NodeAffinity has no score at filter"},
		{"weight without a score", "multiPoint: {enabled: [{name: NodeName, weight: 2}]}", "multiPoint.enabled[0].weight: not supported: NodeName has no score at multiPoint"},
		{"negative weight", "score: {enabled: [{name: NodeAffinity, weight: -2}]}", "score.enabled[0].weight: Invalid value: -2: must be 1 or more; 0 is 1"},
		{"weight of nothing", "score: {disabled: [{name: NodeAffinity, weight: 2}]}", "score.disabled[0].weight: not supported: what is disabled has no weight"},
		{"no order", "queueSort: {disabled: [{name: '*'}]}", "queueSort: not supported: PrioritySort must be enabled: there is no other order of pods"},
		{"no binder", "multiPoint: {disabled: [{name: DefaultBinder}]}", "bind: not supported: DefaultBinder must be enabled: nothing else binds pods"},
		{"no gates", "preEnqueue: {disabled: [{name: SchedulingGates}]}",
			"preEnqueue: not supported: SchedulingGates must be enabled: the API allows no pod with gates to be bound"},
		{"no volumes", "filter: {disabled: [{name: VolumeBinding}]}", "filter: not supported: VolumeBinding must be enabled: pods would start without their volumes"},
		{"no devices", "reserve: {disabled: [{name: DynamicResources}]}",
			"reserve: not supported: DynamicResources must be enabled: pods would start without their devices"},
		{"no filter at all", "filter: {disabled: [{name: '*'}]}", "filter: not supported: DynamicResources must be enabled: pods would start without their devices"},
		{"half a filter", "preFilter: {disabled: [{name: NodePorts}]}", "preFilter: not supported: NodePorts is enabled at filter and needs it"},
		{"a filter that rejects early", "filter: {disabled: [{name: VolumeZone}]}",
			"filter: not supported: VolumeZone is enabled at preFilter, which rejects pods too: disable both"},
		{"half a score", "preScore: {disabled: [{name: '*'}]}", "preScore: not supported: InterPodAffinity is enabled at score and needs it"},
		{"half a preemption", "preEnqueue: {disabled: [{name: DefaultPreemption}]}", "preEnqueue: not supported: DefaultPreemption is enabled at postFilter and needs it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := Parse([]byte(header + "profiles:\n- plugins:\n    " + tt.plugins))
			if err == nil || err.Error() != path+tt.want {
				t.Errorf("got  %v\nwant %s", err, path+tt.want)
			}
		})
	}
}
