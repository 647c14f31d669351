package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
)

// TestDisabledFieldsAreDropped: what belongs to a feature that is switched off is not stored, wherever it stands.
func TestDisabledFieldsAreDropped(t *testing.T) {
	with := `
schedulingGroup: {podGroupName: g}
evictionResponders: [{name: a/b, priority: 1}]
volumes:
- {name: a, emptyDir: {mode: 448}}
- {name: b, secret: {secretName: s, defaultUser: 1, items: [{key: k, path: p, user: 1}]}}
- {name: c, configMap: {name: c, defaultUser: 1, items: [{key: k, path: p, user: 1}]}}
- {name: d, downwardAPI: {defaultUser: 1, items: [{path: p, user: 1}]}}
- name: e
  projected:
    defaultUser: 1
    sources:
    - {secret: {name: s, items: [{key: k, path: p, user: 1}]}}
    - {configMap: {name: c, items: [{key: k, path: p, user: 1}]}}
    - {downwardAPI: {items: [{path: p, user: 1}]}}
    - {serviceAccountToken: {path: t, user: 1}}
    - {clusterTrustBundle: {path: t, user: 1}}
    - {podCertificate: {signerName: a/b, user: 1}}
initContainers: [{name: i, volumeMounts: [{name: a, mountPath: /a, bindMountOptions: [noexec]}]}]
containers:
- name: c
  livenessProbe: {httpGet: {port: 1, protocol: H2C}}
  readinessProbe: {grpc: {port: 1, mode: TLS}}
  lifecycle: {preStop: {httpGet: {port: 1, protocol: H2C}}}
`
	without := `
volumes:
- {name: a, emptyDir: {}}
- {name: b, secret: {secretName: s, items: [{key: k, path: p}]}}
- {name: c, configMap: {name: c, items: [{key: k, path: p}]}}
- {name: d, downwardAPI: {items: [{path: p}]}}
- name: e
  projected:
    sources:
    - {secret: {name: s, items: [{key: k, path: p}]}}
    - {configMap: {name: c, items: [{key: k, path: p}]}}
    - {downwardAPI: {items: [{path: p}]}}
    - {serviceAccountToken: {path: t}}
    - {clusterTrustBundle: {path: t}}
    - {podCertificate: {signerName: a/b}}
initContainers: [{name: i, volumeMounts: [{name: a, mountPath: /a}]}]
containers:
- name: c
  livenessProbe: {httpGet: {port: 1}}
  readinessProbe: {grpc: {port: 1}}
  lifecycle: {preStop: {httpGet: {port: 1}}}
`
	got, want := parseSpec(t, with), parseSpec(t, without)
	Default(got)
	Default(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}

// TestStopSignalsAreKept: their feature is off in 1.37 too, but nodes honour them.
func TestStopSignalsAreKept(t *testing.T) {
	got := parseSpec(t, "{os: {name: linux}, containers: [{name: c, lifecycle: {stopSignal: SIGQUIT}}]}")
	Default(got)
	if l := got.Containers[0].Lifecycle; l == nil || l.StopSignal == nil || *l.StopSignal != corev1.SIGQUIT {
		t.Errorf("%+v", l)
	}
}

func parseSpec(t *testing.T, text string) *corev1.PodSpec {
	t.Helper()
	spec := &corev1.PodSpec{}
	if err := yaml.UnmarshalStrict([]byte(text), spec); err != nil {
		t.Fatal(err)
	}
	return spec
}
