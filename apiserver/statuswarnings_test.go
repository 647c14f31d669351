package apiserver

import (
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestWhoIsWarned: whoever creates an object or changes what a warning is about is told, and not whoever labels it, or writes its status:
// nodes and control loops write many, and their clients log each warning.
func TestWhoIsWarned(t *testing.T) {
	server := newDynamicServer(t)
	const deployments, accounts = "/apis/apps/v1/namespaces/default/deployments", "/api/v1/namespaces/default/serviceaccounts"
	const pods, volumes = "/api/v1/namespaces/default/pods", "/api/v1/persistentvolumes"
	const selector = `"nodeSelector":{"beta.kubernetes.io/os":"linux"},"containers":[{"name":"a","image":"a"}]`
	const oldAnnotation = `"annotations":{"kubernetes.io/enforce-mountable-secrets":"true"}`
	for _, step := range []struct{ name, method, path, body, warning string }{
		{
			"a new Deployment", "POST", deployments, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{` + selector + `}}}}`,
			"spec.template.spec.nodeSelector[beta.kubernetes.io/os]: deprecated since v1.14",
		},
		{"its labels", "PATCH", deployments + "/d", `{"metadata":{"labels":{"x":"y"}}}`, ""},
		{"its size", "PATCH", deployments + "/d", `{"spec":{"replicas":3}}`, "nodeSelector[beta.kubernetes.io/os]"},
		{"its status", "PATCH", deployments + "/d/status", `{"status":{"replicas":3}}`, ""},
		{"a new pod", "POST", pods, `{"metadata":{"name":"p"},"spec":{` + selector + `}}`, "spec.nodeSelector[beta.kubernetes.io/os]"},
		{"a pod's labels", "PATCH", pods + "/p", `{"metadata":{"labels":{"x":"y"}}}`, ""},
		{"a pod's status", "PATCH", pods + "/p/status", `{"status":{"phase":"Running"}}`, ""},
		{
			"another pod", "POST", pods, `{"metadata":{"name":"q"},"spec":{"hostAliases":[{"ip":"FD00::1","hostnames":["a"]}],"containers":[{"name":"a","image":"a"}]}}`,
			`spec.hostAliases[0].ip: IPv6 address \"FD00::1\" should be in RFC 5952 canonical format (\"fd00::1\")`,
		},
		{"a new account", "POST", accounts, `{"metadata":{"name":"s",` + oldAnnotation + `}}`, "metadata.annotations[kubernetes.io/enforce-mountable-secrets]: deprecated in v1.32+"},
		{"an account that has it", "PATCH", accounts + "/s", `{"metadata":{"labels":{"x":"y"}}}`, ""},
		{
			"a new volume", "POST", volumes, `{"metadata":{"name":"v"},"spec":{"capacity":{"storage":"1Gi"},"accessModes":["ReadWriteOnce"],"storageos":{"volumeName":"x"}}}`,
			"spec.storageOS: deprecated in v1.22, non-functional in v1.25+",
		},
		{"a volume's status", "PATCH", volumes + "/v/status", `{"status":{"message":"x"}}`, ""},
		{
			"a slice of names", "POST", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
			`{"metadata":{"name":"e"},"addressType":"FQDN","endpoints":[{"addresses":["a.example.com"]}]}`, "spec.addressType: FQDN endpoints are deprecated",
		},
	} {
		t.Run(step.name, func(t *testing.T) {
			contentType := "application/json"
			if step.method == "PATCH" {
				contentType = patchTypeOf["merge"]
			}
			got := call{method: step.method, path: step.path, contentType: contentType, body: step.body}.do(t, server)
			warnings := strings.Join(got.header.Values("Warning"), "\n")
			if got.code >= http.StatusBadRequest || step.warning == "" && warnings != "" || !strings.Contains(warnings, step.warning) {
				t.Errorf("%d, warnings %q, want %q\n%s", got.code, warnings, step.warning, got.body)
			}
		})
	}
}

// TestAPodThatMayNotBeScheduled says since when.
func TestAPodThatMayNotBeScheduled(t *testing.T) {
	pod := mustDo[corev1.Pod](t, newDynamicServer(t), call{
		method: "POST", path: "/api/v1/namespaces/default/pods",
		body: `{"metadata":{"name":"p"},"spec":{"schedulingGates":[{"name":"example.com/wait"}],"containers":[{"name":"a","image":"a"}]}}`,
	})
	if c := pod.Status.Conditions; len(c) != 1 || !c[0].LastTransitionTime.Equal(&pod.CreationTimestamp) {
		t.Errorf("conditions %+v of a pod made at %s", c, pod.CreationTimestamp)
	}
}
