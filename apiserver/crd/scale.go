package crd

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// scale reads and writes the number of replicas where the definition says. What is
// there has been validated, so a number that cannot be read is one that is missing.
func (v *servedVersion) scale() *resource.Scale[*unstructured.Unstructured] {
	spec := subresources(v.spec).Scale
	if spec == nil {
		return nil
	}
	number := func(path string) func(u *unstructured.Unstructured) int32 {
		return func(u *unstructured.Unstructured) int32 {
			n, _, _ := unstructured.NestedInt64(u.Object, fieldNames(path)...)
			return int32(n)
		}
	}
	return &resource.Scale[*unstructured.Unstructured]{
		Replicas:       number(spec.SpecReplicasPath),
		StatusReplicas: number(spec.StatusReplicasPath),
		SetReplicas: func(u *unstructured.Unstructured, replicas int32) {
			// It fails where the parent is no object, which the schema rules out.
			_ = unstructured.SetNestedField(u.Object, int64(replicas), fieldNames(spec.SpecReplicasPath)...)
		},
		HasReplicas: func(u *unstructured.Unstructured) bool {
			_, found, err := unstructured.NestedInt64(u.Object, fieldNames(spec.SpecReplicasPath)...)
			return found && err == nil
		},
		Selector: func(u *unstructured.Unstructured) string {
			if spec.LabelSelectorPath == nil || *spec.LabelSelectorPath == "" {
				return ""
			}
			text, _, _ := unstructured.NestedString(u.Object, fieldNames(*spec.LabelSelectorPath)...)
			return text
		},
		Paths: v.definition.replicasPaths(),
	}
}
