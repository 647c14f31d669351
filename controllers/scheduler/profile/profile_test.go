package profile

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugins"
)

// header begins every file.
const header = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"

// parsed reads a file that is right.
func parsed(t *testing.T, text string) Config {
	t.Helper()
	config, err := Parse([]byte(header + text))
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// listed shows plugins in a short form: f and s for those that filter and score, and the weight of scores.
func listed(p Profile) string {
	var list []string
	for _, e := range p.Plugins {
		text := e.Name() + ":"
		if e.Filters {
			text += "f"
		}
		if e.Scores {
			text += fmt.Sprint("s", e.Weight)
		}
		list = append(list, text)
	}
	if p.Preemption != nil {
		list = append(list, "preempts")
	}
	return strings.Join(list, " ")
}

// upstreamProfile is what upstream's default profile is here.
const upstreamProfile = "NodeUnschedulable:f NodeName:f TaintToleration:fs3 NodeAffinity:fs2 NodePorts:f NodeResourcesFit:fs1 VolumeRestrictions:f " +
	"NodeVolumeLimits:f VolumeBinding:fs1 VolumeZone:f DynamicResources:fs2 NodeDeclaredFeatures:f NodeResourcesBalancedAllocation:s1 ImageLocality:s1 PodTopologySpread:fs2 " +
	"InterPodAffinity:fs2 preempts"

func TestDefault(t *testing.T) {
	config := Default()
	if len(config.Profiles) != 1 || config.Profiles[0].Name != "default-scheduler" {
		t.Fatalf("%+v", config.Profiles)
	}
	p := config.Profiles[0]
	if diff := cmp.Diff(upstreamProfile, listed(p)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if config.BackoffMin != time.Second || config.BackoffMax != 10*time.Second || p.VolumeWaitMax != 10*time.Minute ||
		*p.Preemption != (Preemption{NodesAbsolute: 100}) || p.NodesToScore != 0 {
		t.Errorf("%+v", config)
	}
	if diff := cmp.Diff(listed(p), listed(parsed(t, "").Profiles[0])); diff != "" {
		t.Errorf("a file that says nothing differs: (-want +got)\n%s", diff)
	}
	if other := (Config{}).Or(config); len(other.Profiles) != 1 || len(config.Or(Config{}).Profiles) != 1 {
		t.Error("the zero value is not replaced, or the other one is")
	}
}

// TestEveryPluginCanBeConfigured: a plugin that upstream's table does not have would never act.
func TestEveryPluginCanBeConfigured(t *testing.T) {
	for _, p := range plugins.All() {
		if len(upstream[p.Name()].points) == 0 {
			t.Errorf("%s has no extension points in the table upstream", p.Name())
		}
	}
}

func TestEnoughNodes(t *testing.T) {
	for _, tt := range []struct {
		percent     int32
		nodes, want int
	}{
		{30, 99, 99}, // few enough to look at all
		{30, 100, 100},
		{30, 500, 150},
		{1, 5000, 100}, // never fewer than 100
		{100, 5000, 5000},
		{0, 1000, 420}, // 50 - 1000/125 = 42 percent
		{0, 5000, 500}, // 50 - 5000/125 = 10 percent
		{0, 6000, 300}, // never less than 5 percent
	} {
		p := Profile{NodesToScore: tt.percent}
		if got := p.Enough(tt.nodes); got != tt.want {
			t.Errorf("%v percent of %d nodes: %d, want %d", tt.percent, tt.nodes, got, tt.want)
		}
	}
}

func TestComparedEvictions(t *testing.T) {
	for _, tt := range []struct {
		p           Preemption
		nodes, want int
	}{
		{Preemption{NodesAbsolute: 100}, 5000, 100},
		{Preemption{NodesAbsolute: 100}, 60, 60},
		{Preemption{NodesPercent: 10, NodesAbsolute: 100}, 5000, 500},
		{Preemption{NodesPercent: 10}, 30, 3},
		{Preemption{NodesPercent: 100, NodesAbsolute: 1}, 30, 30},
	} {
		if got := tt.p.Compared(tt.nodes); got != tt.want {
			t.Errorf("%+v of %d nodes: %d, want %d", tt.p, tt.nodes, got, tt.want)
		}
	}
}
