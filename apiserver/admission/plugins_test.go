package admission

import (
	"slices"
	"strings"
	"testing"
)

// TestDisabled: plugins are left out by upstream's names, also those that users configure, and a name that none has is a mistake.
func TestDisabled(t *testing.T) {
	all := []known{
		{"TaintNodesByCondition", taintNodesByCondition{}},
		{"Attended", attended{}},
		{"ValidatingAdmissionWebhook", defaultTolerationSeconds{}},
	}
	left, err := without([]string{"TaintNodesByCondition", "ValidatingAdmissionWebhook", "AlwaysPullImages"}, slices.Clone(all))
	if err != nil || len(left) != 1 || left[0].name != "Attended" {
		t.Errorf("%v, %v", left, err)
	}
	if _, err := without([]string{"C", "LimitRanger", "Attended"}, all); err == nil || !strings.HasSuffix(err.Error(), "not there: C, LimitRanger, Attended") {
		t.Errorf("unknown names: %v", err)
	}
}
