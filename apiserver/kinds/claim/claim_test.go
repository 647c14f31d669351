package claim

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func read(t *testing.T, text string) *corev1.PersistentVolumeClaimSpec {
	t.Helper()
	spec := &corev1.PersistentVolumeClaimSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	Default(spec)
	return spec
}

func TestValidate(t *testing.T) {
	const good = `accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}`
	for name, test := range map[string]struct {
		spec, old string
		want      []string
	}{
		"good": {`{` + good + `}`, "", nil},
		"nothing": {`{}`, "", []string{
			`spec.accessModes: Required value: at least 1 access mode is required`,
			`spec.resources[storage]: Required value`,
		}},
		"modes": {`{accessModes: [ReadWriteOncePod, ReadWriteOnce, Sometimes], volumeMode: Tape, resources: {requests: {storage: "0"}}}`, "", []string{
			`spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes`,
			`spec.accessModes: Unsupported value: "Sometimes": supported values: "ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"`,
			`spec.resources[storage]: Invalid value: "0": must be greater than zero`,
			`spec.volumeMode: Unsupported value: "Tape": supported values: "Block", "Filesystem"`,
		}},
		"class": {`{` + good + `, storageClassName: "A B"}`, "", []string{
			`spec.storageClassName: Invalid value: "A B": a lowercase RFC 1123 subdomain`,
		}},
		"source": {`{` + good + `, dataSource: {kind: Disk, name: ""}}`, "", []string{
			`spec.dataSource.name: Required value`,
			`spec.dataSource: Invalid value: "Disk": must be 'PersistentVolumeClaim' when referencing the default apiGroup`,
		}},
		"group":     {`{` + good + `, dataSource: {apiGroup: "A_B", kind: Disk, name: a}}`, "", []string{`spec.dataSource.apiGroup: Invalid value: "A_B": a lowercase RFC 1123 subdomain`}},
		"old group": {`{` + good + `, dataSource: {apiGroup: "A_B", kind: Disk, name: a}}`, `{dataSource: {apiGroup: "A_B", kind: Disk, name: a}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			var old *corev1.PersistentVolumeClaimSpec
			if test.old != "" {
				old = read(t, test.old)
			}
			got := kindstest.Messages(Validate(read(t, test.spec), old, field.NewPath("spec")))
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func TestNormalize(t *testing.T) {
	for name, test := range map[string]struct{ spec, old, want string }{
		"older field":         {`dataSource: {kind: PersistentVolumeClaim, name: a}`, "", `{dataSource: {kind: PersistentVolumeClaim, name: a}, dataSourceRef: {kind: PersistentVolumeClaim, name: a}}`},
		"newer field":         {`dataSourceRef: {apiGroup: x.y, kind: Disk, name: a}`, "", `{dataSource: {apiGroup: x.y, kind: Disk, name: a}, dataSourceRef: {apiGroup: x.y, kind: Disk, name: a}}`},
		"unknown source":      {`dataSource: {apiGroup: x.y, kind: Disk, name: a}`, "", `{}`},
		"unknown, as before":  {`dataSource: {apiGroup: x.y, kind: Disk, name: a}`, `dataSourceRef: {apiGroup: x.y, kind: Disk, name: a}`, `{dataSource: {apiGroup: x.y, kind: Disk, name: a}, dataSourceRef: {apiGroup: x.y, kind: Disk, name: a}}`},
		"of other namespaces": {`dataSourceRef: {kind: PersistentVolumeClaim, name: a, namespace: b}`, "", `{}`},
	} {
		t.Run(name, func(t *testing.T) {
			spec := read(t, test.spec)
			var old *corev1.PersistentVolumeClaimSpec
			if test.old != "" {
				old = read(t, test.old)
			}
			Normalize(spec, old)
			if diff := cmp.Diff(read(t, test.want), spec); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}
