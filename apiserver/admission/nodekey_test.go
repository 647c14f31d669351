package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestNoNodeSaysWhoseItsNameIs: a machine with a certificate of a former life of the name
// cannot take it back.
func TestNoNodeSaysWhoseItsNameIs(t *testing.T) {
	keyed := func(key string) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", Annotations: map[string]string{trust.NodeKeyAnnotation: key}}}
	}
	none := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a"}}
	for name, c := range map[string]nodeWrite{
		"keeps it":            {nodeA, admission.Update, keyed("k"), keyed("k"), true},
		"changes it":          {nodeA, admission.Update, keyed("l"), keyed("k"), false},
		"drops it":            {nodeA, admission.Update, none, keyed("k"), false},
		"registers with one":  {nodeA, admission.Create, keyed("k"), nil, false},
		"somebody else may":   {someone, admission.Update, none, keyed("k"), true},
		"registers with none": {nodeA, admission.Create, none, nil, true},
	} {
		c.check(t, name, nodeRestriction{})
	}
}

// nodeWrite is somebody's write of the Node a.
type nodeWrite struct {
	who         user.Info
	operation   admission.Operation
	object, old runtime.Object
	allowed     bool
}

func (c nodeWrite) check(t *testing.T, name string, r nodeRestriction) {
	t.Helper()
	err := r.Admit(t.Context(), admission.NewAttributesRecord(c.object, c.old, schema.GroupVersionKind{},
		"", "a", corev1.SchemeGroupVersion.WithResource("nodes"), "", c.operation, nil, false, c.who), nil)
	if (err == nil) != c.allowed {
		t.Errorf("%s: %v", name, err)
	}
}
