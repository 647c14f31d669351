package podspec

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// TestWarnings: each is said for what it is about, and for nothing else.
func TestWarnings(t *testing.T) {
	for text, want := range map[string]string{
		`{}`: "",
		`{topologySpreadConstraints: [{topologyKey: k}]}`:                                                                         "spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
		`{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: k}]}}}`:                         "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: a null labelSelector results in matching no pod",
		`{affinity: {podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{podAffinityTerm: {topologyKey: k}}]}}}`: "spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
		`{affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {}}]}}}`:                      "",
		`{volumes: [{name: v, storageos: {}}]}`:                                                                                   "spec.volumes[0].storageOS: deprecated in v1.22, non-functional in v1.25+",
		`{hostAliases: [{ip: 10.0.0.1}, {ip: 10.0.0.1}]}`:                                                                         `spec.hostAliases[1].ip: duplicate ip "10.0.0.1"`,
		`{imagePullSecrets: [{name: a}, {name: a}]}`:                                                                              `spec.imagePullSecrets[1].name: duplicate name "a"`,
		`{imagePullSecrets: [{}]}`:                                                                                                `spec.imagePullSecrets[0].name: invalid empty name ""`,
		`{overhead: {memory: 1m}}`:                                                                                                `spec.overhead[memory]: fractional byte value "1m" is invalid, must be an integer`,
		`{containers: [{resources: {requests: {ephemeral-storage: 1500m}}}]}`:                                                     `spec.containers[0].resources.requests[ephemeral-storage]: fractional byte value "1500m" is invalid, must be an integer`,
		`{initContainers: [{resources: {limits: {memory: 1.5}}}]}`:                                                                `spec.initContainers[0].resources.limits[memory]: fractional byte value "1500m" is invalid, must be an integer`,
		`{containers: [{resources: {limits: {memory: 1Ki, cpu: 1m}}}]}`:                                                           "",
		`{containers: [{env: [{name: A, value: x}, {name: A, value: y}]}]}`:                                                       `spec.containers[0].env[1]: hides previous definition of "A", which may be dropped when using apply`,
		`{containers: [{env: [{name: A, value: x}, {name: A, value: "$(A):y"}]}]}`:                                                "",
	} {
		var spec corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(text, err)
		}
		got := Warnings(&spec, field.NewPath("spec"))
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
