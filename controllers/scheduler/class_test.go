package scheduler

import (
	"fmt"
	"testing"

	"github.com/setpoint-io/setpoint/controllers/scheduler/plugin"
	"github.com/setpoint-io/setpoint/controllers/scheduler/podkey"
)

// TestClassesAreForgotten beyond the limits, with all that they count.
func TestClassesAreForgotten(t *testing.T) {
	b := newBench(nodesNamed(3)...)
	class := func(i int, cpu string) *class {
		pod := testPod(fmt.Sprint("p", i), cpu, "")
		pod.Labels["app"] = fmt.Sprint("app-", i)
		return b.engine.class(plugin.NewPod(pod), podkey.Of(pod), nil)
	}
	for i := range classLimit + 10 {
		class(i, "1")
	}
	cs := &b.engine.classes
	if len(cs.by) != classLimit || cs.recent.Len() != classLimit {
		t.Errorf("%d classes in %d places, want %d", len(cs.by), cs.recent.Len(), classLimit)
	}
	if len(cs.shapes.by) != 1 {
		t.Errorf("%d shapes for pods that ask the same of a node", len(cs.shapes.by))
	}
	first := class(20, "1")
	class(classLimit+10, "2")
	if class(20, "1") != first {
		t.Error("a class that was used lately is made anew")
	}
	b.engine.reset()
	if len(cs.by)+len(cs.shapes.by)+cs.recent.Len()+cs.shapes.recent.Len() != 0 {
		t.Errorf("after a reset there are %d classes, %d shapes", len(cs.by), len(cs.shapes.by))
	}
}

// TestFewShapesKeepVerdicts in a cluster of many nodes; the others judge anew, and come to the same.
func TestFewShapesKeepVerdicts(t *testing.T) {
	const nodes = verdictLimit / 4
	shapes := newClasses().shapes
	var all []*shape
	for range 6 {
		s := newShape(plugin.NewPod(testPod("p", "1", "")), nil)
		shapes.use(s, nodes)
		all = append(all, s)
	}
	for i, s := range all {
		if kept := s.verdicts != nil; kept != (i >= 2) {
			t.Errorf("shape %d keeps verdicts: %v", i, kept)
		}
	}
	shapes.use(all[2], nodes)
	shapes.use(all[0], nodes)
	if all[2].verdicts == nil || all[3].verdicts != nil || shapes.recent.Len() != 4 {
		t.Error("the shape not used for longest is not the one that stopped")
	}
}
