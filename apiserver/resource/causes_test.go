package resource

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"
)

func TestInternalValues(t *testing.T) {
	path := field.NewPath("x")
	for name, test := range map[string]struct {
		value any
		want  string
	}{
		"text":      {"a", `x: Invalid value: "a": why`},
		"named":     {corev1.ProtocolTCP, `x: Invalid value: "TCP": why`},
		"nothing":   {nil, `x: Invalid value: null: why`},
		"struct":    {corev1.Toleration{Key: "a"}, `x: Invalid value: {"Key":"a","Operator":"","Value":"","Effect":"","TolerationSeconds":null}: why`},
		"pointer":   {&corev1.PodReadinessGate{ConditionType: "<"}, `x: Invalid value: {"ConditionType":"\u003c"}: why`},
		"no struct": {(*corev1.NodeAffinity)(nil), `x: Invalid value: null: why`},
		"list":      {[]corev1.PodIP{{IP: "1"}, {IP: "2"}}, `x: Invalid value: [{"IP":"1"},{"IP":"2"}]: why`},
		"no list":   {[]corev1.PodIP(nil), `x: Invalid value: null: why`},
		"map":       {map[string]corev1.PodIP{"b": {}, "a": {IP: "1"}}, `x: Invalid value: {"a":{"IP":"1"},"b":{"IP":""}}: why`},
		"embedded":  {corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "c"}}}, `x: Invalid value: {"FieldRef":null,"ResourceFieldRef":null,"ConfigMapKeyRef":{"Name":"c","Key":"","Optional":null},"SecretKeyRef":null,"FileKeyRef":null}: why`},
		"metadata":  {corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "n"}}.ObjectMeta, `x: Invalid value: {"name":"n"}: why`},
		"amounts":   {corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("1")}}, `x: Invalid value: {"Limits":{"cpu":"1"},"Requests":null,"Claims":null}: why`},
		"selector":  {&metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, `x: Invalid value: {"matchLabels":{"a":"b"}}: why`},
		"seconds":   {corev1.Toleration{TolerationSeconds: ptr.To(int64(3))}, `x: Invalid value: {"Key":"","Operator":"","Value":"","Effect":"","TolerationSeconds":3}: why`},
	} {
		errs := InternalValues(field.ErrorList{field.Invalid(path, test.value, "why")})
		if got := errs[0].Error(); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
	template := corev1.PersistentVolumeClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	const want = `{"name":"n","Spec":{"AccessModes":null,`
	if got := InternalValues(field.ErrorList{field.Invalid(path, template, "")})[0].Error(); got[len("x: Invalid value: "):][:len(want)] != want {
		t.Errorf("%s", got)
	}
}

func TestDiff(t *testing.T) {
	const want = "@@ -1,5 +1,5 @@\n {\n- \"Key\": \"a\",\n+ \"Key\": \"b\",\n  \"Operator\": \"\",\n  \"Value\": \"\",\n  \"Effect\": \"\",\n"
	if got := Diff(corev1.Toleration{Key: "a"}, corev1.Toleration{Key: "b"}); got != want {
		t.Errorf("%q", got)
	}
}
