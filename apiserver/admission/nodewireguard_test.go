package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/internal/wireguardkey"
)

// TestNoNodeTellsAnothersKey: it would be cut off.
func TestNoNodeTellsAnothersKey(t *testing.T) {
	const hers, own = "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s=", "zc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3Nzc3NzQ0="
	keyed := func(name, key string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{wireguardkey.Annotation: `{"wireGuardKey":"` + key + `"}`}}}
	}
	w := newWorld(t, allowAll, keyed("a", own), keyed("b", hers))
	for name, c := range map[string]nodeWrite{
		"keeps its own":                {nodeA, admission.Update, keyed("a", own), keyed("a", own), true},
		"tells its own":                {nodeA, admission.Update, keyed("a", own), keyed("a", ""), true},
		"tells another's":              {nodeA, admission.Update, keyed("a", hers), keyed("a", own), false},
		"tells another's, broken":      {nodeA, admission.Update, keyed("a", `\n`+hers), keyed("a", own), false},
		"registers with another's":     {nodeA, admission.Create, keyed("a", hers), nil, false},
		"registers with its own":       {nodeA, admission.Create, keyed("a", own), nil, true},
		"tells none":                   {nodeA, admission.Update, keyed("a", ""), keyed("a", own), true},
		"had it before the rule was":   {nodeA, admission.Update, keyed("a", hers), keyed("a", hers), true},
		"an administrator tells for a": {someone, admission.Update, keyed("a", hers), keyed("a", own), true},
	} {
		c.check(t, name, newNodeRestriction(w.store, nil, nil))
	}
}
