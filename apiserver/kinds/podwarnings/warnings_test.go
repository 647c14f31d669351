package podwarnings

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		`{nodeSelector: {beta.kubernetes.io/os: linux}}`:                                                                          `spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14; use "kubernetes.io/os" instead`,
		`{affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchExpressions: [{key: beta.kubernetes.io/arch, operator: Exists}]}]}}}}`: `spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0].matchExpressions[0].key: beta.kubernetes.io/arch is deprecated since v1.14; use "kubernetes.io/arch" instead`,
		`{topologySpreadConstraints: [{topologyKey: failure-domain.beta.kubernetes.io/zone, labelSelector: {}}]}`:                                                                     `spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
		`{volumes: [{name: v, ephemeral: {volumeClaimTemplate: {spec: {resources: {requests: {storage: 1500m}}}}}}]}`:                                                                 `spec.volumes[0].ephemeral.volumeClaimTemplate.spec.resources.requests[storage]: fractional byte value "1500m" is invalid, must be an integer`,
		`{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: x/y}, {key: b, path: x}]}}]}`:                                                                               `volume "v" (ConfigMap "c"): overlapping paths: "x" with "x/y"`,
		`{volumes: [{name: v, configMap: {name: c, items: [{key: a, path: xy}, {key: b, path: x}]}}]}`:                                                                                "",
		`{volumes: [{name: v, projected: {sources: [{secret: {name: s, items: [{key: a, path: t}]}}, {serviceAccountToken: {path: t}}]}}]}`:                                           `volume "v" (Projected): overlapping paths: "t" (ServiceAccountToken) with "t" (Secret "s")`,
		`{volumes: [{name: v, projected: {sources: [{}]}}]}`:                                                                                                                          `volume "v" (Projected) has no sources provided`,
		`{containers: [{name: a, ports: [{containerPort: 80}]}, {name: b, ports: [{containerPort: 80}]}]}`:                                                                            "spec.containers[1].ports[0]: duplicate port definition with spec.containers[0].ports[0]",
		`{containers: [{name: a, ports: [{containerPort: 80, hostPort: 8}, {containerPort: 80}]}]}`:                                                                                   "spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
		`{containers: [{name: a, ports: [{containerPort: 80, hostPort: 8, hostIP: 10.0.0.1}, {containerPort: 80, hostPort: 8}]}]}`:                                                    "spec.containers[0].ports[1]: dangerously ambiguous port definition with spec.containers[0].ports[0]",
		`{containers: [{name: a, ports: [{containerPort: 80, hostPort: 8}, {containerPort: 80, hostPort: 9}]}]}`:                                                                      "",
		`{containers: [{name: a, ports: [{containerPort: 80, hostIP: 10.0.0.1}]}]}`:                                                                                                   "spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:80 Protocol: HostIP:10.0.0.1}",
		`{initContainers: [{name: a, ports: [{name: web, containerPort: 80}]}], containers: [{name: b, ports: [{name: web, containerPort: 81}]}]}`:                                    `spec.containers[0].ports[0]: duplicate port name "web" with spec.initContainers[0].ports[0], services and probes that select ports by name will use spec.initContainers[0].ports[0]`,
		`{hostAliases: [{ip: "FD00::1"}]}`:    `spec.hostAliases[0].ip: IPv6 address "FD00::1" should be in RFC 5952 canonical format ("fd00::1")`,
		`{terminationGracePeriodSeconds: -1}`: "spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
	} {
		var spec corev1.PodSpec
		if err := yaml.UnmarshalStrict([]byte(text), &spec); err != nil {
			t.Fatal(text, err)
		}
		got := Pod(&corev1.Pod{Spec: spec})
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestAnnotations: what a template's annotations say counts only without the fields that took their place, and is told by their paths.
func TestAnnotations(t *testing.T) {
	const profile = "container.apparmor.security.beta.kubernetes.io/a"
	template := corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{
			profile: "runtime/default", "seccomp.security.alpha.kubernetes.io/pod": "x", "container.seccomp.security.alpha.kubernetes.io/a": "x",
		}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a"}}},
	}
	at := "spec.template.metadata.annotations"
	want := []string{
		at + `[seccomp.security.alpha.kubernetes.io/pod]: non-functional in v1.27+; use the "seccompProfile" field instead`,
		at + `[container.seccomp.security.alpha.kubernetes.io/a]: non-functional in v1.27+; use the "seccompProfile" field instead`,
		at + "[" + profile + `]: deprecated since v1.30; use the "appArmorProfile" field instead`,
	}
	if got := Template(&template, field.NewPath("spec", "template")); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	template.Spec.SecurityContext = &corev1.PodSecurityContext{
		SeccompProfile:  &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		AppArmorProfile: &corev1.AppArmorProfile{Type: corev1.AppArmorProfileTypeRuntimeDefault},
	}
	template.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{SeccompProfile: template.Spec.SecurityContext.SeccompProfile}
	if got := Template(&template, field.NewPath("spec", "template")); len(got) > 0 {
		t.Errorf("with fields: %q", got)
	}
}

// TestManyWarnings: who sends a pod of thousands of equal ports and files makes the server neither compare all with all nor tell all.
func TestManyWarnings(t *testing.T) {
	const many = 100_000
	pod := &corev1.Pod{Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Ports: slices.Repeat([]corev1.ContainerPort{{ContainerPort: 80}}, many)}},
		Volumes: []corev1.Volume{{VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{Items: slices.Repeat([]corev1.KeyToPath{{Path: "a/b"}}, many)},
		}}},
	}}
	if got := len(Pod(pod)); got != warningsMax {
		t.Errorf("%d warnings, want %d", got, warningsMax)
	}
	all := ports(&pod.Spec, field.NewPath("spec"))
	if got := len(numberWarnings(all)); got != warningsMax {
		t.Errorf("%d warnings of numbers, want %d", got, warningsMax)
	}
}

// TestLongPaths: a path of a megabyte is told once for each file below which it is, and cut.
func TestLongPaths(t *testing.T) {
	items := append([]corev1.KeyToPath{{Path: "a/" + strings.Repeat("b", 1<<20)}}, slices.Repeat([]corev1.KeyToPath{{Path: "a"}}, 10)...)
	config := &corev1.ConfigMapVolumeSource{Items: items}
	volumes := slices.Repeat([]corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{ConfigMap: config}}}, 10)
	told := 0
	for _, warning := range volumesWarnings(volumes, field.NewPath("volumes")) {
		told += len(warning)
	}
	if most := 2 * warningsMax * 2 * pathBytesMax; told == 0 || told > most {
		t.Errorf("%d bytes of warnings, want at most %d", told, most)
	}
}
