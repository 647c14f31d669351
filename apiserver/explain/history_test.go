package explain

import (
	"fmt"
	"strings"
	"testing"
)

// told prints a history in short: object, what, how often, by whom.
func told(steps []Step) string {
	var all []string
	for _, s := range steps {
		all = append(all, fmt.Sprintf("%s %s*%d %s@%d", s.Object, s.Did, s.Writes, strings.TrimPrefix(s.By, "loop:"), s.Revision))
	}
	return strings.Join(all, "; ")
}

func TestHistory(t *testing.T) {
	pod, set, web := Pods.Named("n", "web-a-1"), ReplicaSets.Named("n", "web-a"), Deployments.Named("n", "web")
	by := func(o Object, did, who string, cause uint64, of string) Write {
		return Write{Object: o, UID: o.Name, Did: did, By: who, CauseRevision: cause, CauseUID: of}
	}
	chain := map[uint64]Write{
		10: by(web, "created", "alice", 0, ""),
		12: by(web, "changed", "loop:deployment", 10, "web"),
		13: by(web, "changed", "loop:deployment", 12, "web"),
		14: by(set, "created", "loop:deployment", 13, "web"),
		15: by(pod, "created", "loop:replicaset", 14, "web-a"),
		16: by(pod, "changed", "loop:scheduler", 15, "web-a-1"),
	}
	circle := map[uint64]Write{5: by(web, "changed", "x", 5, "web"), 7: by(web, "changed", "x", 9, "web")}
	long := map[uint64]Write{}
	for i := range uint64(100) {
		long[i+1] = by(Pods.Named("n", fmt.Sprint("p", i%2)), "changed", "x", i, fmt.Sprint("p", (i+1)%2))
	}
	tests := map[string]struct {
		writes  map[uint64]Write
		version string
		want    string
	}{
		"from the scheduler's write to the user's": {chain, "16", "Pod/web-a-1 changed*1 scheduler@16; Pod/web-a-1 created*1 replicaset@15; " +
			"ReplicaSet/web-a created*1 deployment@14; Deployment/web changed*2 deployment@13; Deployment/web created*1 alice@10"},
		"the first writes have left the history": {map[uint64]Write{15: chain[15]}, "15", "Pod/web-a-1 created*1 replicaset@15; / *0 @0"},
		"all writes have left the history":       {nil, "16", "Pod/web-a-1 *0 @0"},
		"the cause is another object's write":    {map[uint64]Write{15: chain[15], 14: chain[13]}, "15", "Pod/web-a-1 created*1 replicaset@15; / *0 @0"},
		"a cause that is not older":              {circle, "5", "Deployment/web changed*1 x@5"},
		"a cause of the future":                  {circle, "7", "Deployment/web changed*1 x@7"},
		"no revision":                            {chain, "", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := told(history(&scene{writes: test.writes}, pod, test.version)); got != test.want {
				t.Errorf("got  %s\nwant %s", got, test.want)
			}
		})
	}
	if got := history(&scene{writes: long}, pod, "100"); len(got) != stepsMax {
		t.Errorf("%d steps of a long history", len(got))
	}
}

// TestHistoryOfOthers: of what a caller may not get it is told that it was written, not by whom.
func TestHistoryOfOthers(t *testing.T) {
	steps := []Step{
		{Object: Pods.Named("n", "p"), Did: "created", By: "loop", Revision: 3, Writes: 1},
		{Object: Nodes.Named("", "secret"), Did: "changed", By: "mallory", Manager: "tool", Revision: 2, Writes: 1},
		{},
	}
	got := Answer{History: steps}.Visible(func(o Object) bool { return o.Kind == "Pod" }).History
	if len(got) != 3 || got[0] != steps[0] || got[2] != (Step{}) {
		t.Fatalf("%+v", got)
	}
	if s := got[1]; s.Object.Name != "" || s.By != "" || s.Manager != "" || s.Revision != 0 || s.Did != "changed" {
		t.Errorf("told of another's node: %+v", s)
	}
}
