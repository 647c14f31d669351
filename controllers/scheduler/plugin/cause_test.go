package plugin

import "testing"

func TestCause(t *testing.T) {
	for bit := range EventBits {
		if Event(1<<bit).Cause() == "" {
			t.Errorf("event %d has no label", bit)
		}
	}
	if got := (NodeTaints | PodGone).Cause(); got != "NodeUpdateNodeTaint" {
		t.Errorf("two events have the label %q, want that of the first", got)
	}
	if got := Event(0).Cause(); got != "" {
		t.Errorf("no event has the label %q", got)
	}
}
