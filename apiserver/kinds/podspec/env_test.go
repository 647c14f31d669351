package podspec

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestFieldRefs: what no pod has, what cannot be read there, and what can.
func TestFieldRefs(t *testing.T) {
	for path, want := range map[string]string{
		"status.podIP":             "",
		"metadata.labels['a']":     "",
		"spec.restartPolicy":       `f.fieldPath: Unsupported value: "spec.restartPolicy": supported values: `,
		"new.path":                 `f.fieldPath: Invalid value: "new.path": error converting fieldPath: field label not supported: new.path`,
		"metadata.finalizers['a']": `error converting fieldPath: field label does not support subscript: metadata.finalizers['a']`,
	} {
		errs := validateFieldRef(&corev1.ObjectFieldSelector{APIVersion: "v1", FieldPath: path}, envFieldPaths, field.NewPath("f"))
		if got := errs.ToAggregate(); want == "" && got != nil || want != "" && (got == nil || !strings.Contains(got.Error(), want)) {
			t.Errorf("%s: %v, want %q", path, got, want)
		}
	}
	errs := validateFieldRef(&corev1.ObjectFieldSelector{APIVersion: "v2", FieldPath: "status.podIP"}, envFieldPaths, field.NewPath("f"))
	if got := errs.ToAggregate(); got == nil || !strings.Contains(got.Error(), "unsupported pod version: v2") {
		t.Errorf("of another version: %v", got)
	}
}
