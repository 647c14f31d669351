package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/admission/choice"
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

// TestOrder: upstream's plugins run in upstream's order, the ones that are added too, and none that choice says runs is forgotten.
func TestOrder(t *testing.T) {
	added := map[string]admission.Interface{}
	for _, p := range choice.All() {
		if p.Default == choice.Off {
			added[p.Name] = attended{}
		}
	}
	plugins, err := list(Config{Added: added})
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, p := range plugins {
		if _, upstream := choice.Find(p.name); upstream {
			got = append(got, p.name)
		}
	}
	for _, p := range choice.All() {
		if p.Default != choice.Idle && p.Missing == "" && !elsewhere[p.Name] {
			want = append(want, p.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-choice +chain)\n%s", diff)
	}
}

// elsewhere are plugins that other packages put behind these, or that are part of a write.
var elsewhere = map[string]bool{
	"MutatingAdmissionPolicy": true, "MutatingAdmissionWebhook": true, "ValidatingAdmissionPolicy": true, "ValidatingAdmissionWebhook": true,
	"ResourceQuota": true,
}
