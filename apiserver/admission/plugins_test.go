package admission

import (
	"strings"
	"testing"
)

// TestDisabled: plugins are left out by name, and a name that none has is a mistake.
func TestDisabled(t *testing.T) {
	all := []known{{"A", taintNodesByCondition{}}, {"B", defaultTolerationSeconds{}}}
	left, err := without([]string{"A"}, all)
	if err != nil || len(left) != 1 || left[0] != all[1] {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := without([]string{"C", "A"}, all); err == nil || !strings.HasSuffix(err.Error(), "not there: C") {
		t.Errorf("an unknown name: %v", err)
	}
}
