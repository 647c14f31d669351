package apiserver

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// manifestsOf writes a file for each plugin into a folder of its own, and returns what the administrator's file says of them.
func manifestsOf(t *testing.T, files map[string]string) func(plugin string) []byte {
	t.Helper()
	configurations := map[string][]byte{}
	kinds := map[string]string{
		"ValidatingAdmissionPolicy": "ValidatingAdmissionPolicyConfiguration", "MutatingAdmissionPolicy": "MutatingAdmissionPolicyConfiguration",
		"ValidatingAdmissionWebhook": "WebhookAdmissionConfiguration", "MutatingAdmissionWebhook": "WebhookAdmissionConfiguration",
	}
	for plugin, text := range files {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		configurations[plugin] = fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: %s\nstaticManifestsDir: %s\n", kinds[plugin], dir)
	}
	return func(plugin string) []byte { return configurations[plugin] }
}

// hookManifest is a webhook for ConfigMaps, and one for configurations of webhooks, as a file has it.
func hookManifest(kind string, h *hook) string {
	return fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: %s
metadata: {name: hook.static.k8s.io}
webhooks:
- name: hook.example.com
  clientConfig: {url: %q, caBundle: %s}
  rules:
  - {apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}
  - {apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], resources: [validatingwebhookconfigurations], operations: [CREATE]}
  admissionReviewVersions: [v1]
  sideEffects: None
`, kind, h.server.URL, base64.StdEncoding.EncodeToString(h.ca))
}

const policyManifests = `apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short.static.k8s.io}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
  validations: [{expression: "object.metadata.name.size() < 5", message: "names are short"}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short.static.k8s.io}
spec: {policyName: short.static.k8s.io, validationActions: [Deny]}
`

const mutationManifests = `apiVersion: v1
kind: List
items:
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicy
  metadata: {name: mark.static.k8s.io}
  spec:
    matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], resources: [configmaps], operations: [CREATE]}]}
    reinvocationPolicy: Never
    mutations: [{patchType: JSONPatch, jsonPatch: {expression: "[JSONPatch{op: 'add', path: '/data/marked', value: 'yes'}]"}}]
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicyBinding
  metadata: {name: mark.static.k8s.io}
  spec: {policyName: mark.static.k8s.io}
`

// TestWebhooksAndPoliciesFromFiles: they act from the first request, beside those of the API, which does not show them; and on
// configurations of webhooks too, which no webhook of the API is asked about.
func TestWebhooksAndPoliciesFromFiles(t *testing.T) {
	seen := newHook(t, patch(`[{"op":"add","path":"/metadata/labels","value":{"seen":"yes"}}]`))
	guard := newHook(t, deny("not today"))
	server := newConfiguredServer(t, manifestsOf(t, map[string]string{
		"MutatingAdmissionWebhook": hookManifest("MutatingWebhookConfiguration", seen), "ValidatingAdmissionPolicy": policyManifests,
		"MutatingAdmissionPolicy": mutationManifests,
	}))
	cm := mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("x")})
	if cm.Labels["seen"] != "yes" || cm.Data["marked"] != "yes" {
		t.Errorf("labels %v, data %v", cm.Labels, cm.Data)
	}
	refusal{code: 422, reason: metav1.StatusReasonInvalid, messageHas: "ValidatingAdmissionPolicy 'short.static.k8s.io' with binding 'short.static.k8s.io' denied request: names are short"}.
		check(t, "a policy of a file", call{method: "POST", path: cmPath, body: cmBody("longer")}.do(t, server))
	guarded := newConfiguredServer(t, manifestsOf(t, map[string]string{"ValidatingAdmissionWebhook": hookManifest("ValidatingWebhookConfiguration", guard)}))
	denied := refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: `admission webhook "hook.example.com" denied the request: not today`}
	denied.check(t, "a ConfigMap", call{method: "POST", path: cmPath, body: cmBody("bad-x")}.do(t, guarded))
	denied.check(t, "a webhook", call{method: "POST", path: registrationPath + "validatingwebhookconfigurations", body: `{"metadata":{"name":"bad-other"}}`}.do(t, guarded))
	if list := mustDo[metav1.List](t, guarded, call{method: "GET", path: registrationPath + "validatingwebhookconfigurations"}); len(list.Items) != 0 {
		t.Errorf("the API shows %d webhooks", len(list.Items))
	}
}

// TestCredentialsForWebhooks: a webhook is called as the user that the administrator's kubeconfig has for its host.
func TestCredentialsForWebhooks(t *testing.T) {
	h := newHook(t, nil)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\nusers:\n- {name: %q, user: {token: canary}}\n", h.server.Listener.Addr())
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := newConfiguredServer(t, func(plugin string) []byte {
		if plugin != "ValidatingAdmissionWebhook" {
			return nil
		}
		return fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: %s\n", kubeconfig)
	})
	mustDo[admissionregistrationv1.ValidatingWebhookConfiguration](t, server, call{
		method: "POST", path: registrationPath + "validatingwebhookconfigurations", body: fmt.Sprintf(`{"metadata":{"name":"byurl"},"webhooks":[{
			"name":"hook.example.com","clientConfig":{"url":%q,"caBundle":%q},"admissionReviewVersions":["v1"],"sideEffects":"None",
			"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]}`,
			h.server.URL, base64.StdEncoding.EncodeToString(h.ca)),
	})
	n := 0
	eventually(t, "the webhook is asked", func() bool {
		n++
		call{method: "POST", path: cmPath, body: cmBody(fmt.Sprint("x", n))}.do(t, server)
		h.mu.Lock()
		defer h.mu.Unlock()
		return len(h.asked) > 0
	})
	if h.credentials != "Bearer canary" {
		t.Errorf("the webhook was shown %q", h.credentials)
	}
}
