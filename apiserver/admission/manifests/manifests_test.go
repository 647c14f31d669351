package manifests

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const (
	header   = "apiVersion: admissionregistration.k8s.io/v1\n"
	policy   = header + "kind: ValidatingAdmissionPolicy\nmetadata: {name: a.static.k8s.io}\nspec:\n  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], resources: [pods], operations: [CREATE]}]}\n  validations: [{expression: 'true'}]\n"
	binding  = header + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: a.static.k8s.io}\nspec: {policyName: a.static.k8s.io, validationActions: [Deny]}\n"
	webhook  = header + "kind: MutatingWebhookConfiguration\nmetadata: {name: a.static.k8s.io}\nwebhooks:\n- {name: a.b.c, clientConfig: {url: 'https://a'}, rules: [], admissionReviewVersions: [v1], sideEffects: None}\n"
	policies = "ValidatingAdmissionPolicy"
	hooks    = "MutatingAdmissionWebhook"
)

// TestCheck: upstream's rules for files hold, and those of the kinds.
func TestCheck(t *testing.T) {
	loaders, err := Loaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct{ plugin, text, words string }{
		"nothing":                {policies, "", ""},
		"a policy":               {policies, policy + "---\n" + binding, ""},
		"a typed list":           {policies, header + "kind: ValidatingAdmissionPolicyList\nitems: []\n", ""},
		"a webhook":              {hooks, webhook, ""},
		"of another plugin":      {hooks, policy, "unrecognized resource type *v1.ValidatingAdmissionPolicy"},
		"another kind":           {policies, "apiVersion: v1\nkind: Pod\n", `no kind "Pod" is registered`},
		"a name of the API":      {policies, strings.Replace(policy, "a.static.k8s.io", "a", 1), `"a" in file`},
		"a name that is none":    {policies, strings.Replace(policy, "a.static.k8s.io", "A.static.k8s.io", 1), "metadata.name: Invalid value"},
		"a rule of the kind":     {policies, strings.Replace(policy, "'true'", "'tru'", 1), `ValidatingAdmissionPolicy "a.static.k8s.io": spec.validations[0].expression: Invalid value`},
		"a binding of nothing":   {policies, binding, "a.static.k8s.io"},
		"parameters":             {policies, strings.Replace(policy, "spec:\n", "spec:\n  paramKind: {apiVersion: v1, kind: ConfigMap}\n", 1), "spec.paramKind is not supported for static manifests"},
		"a Service":              {hooks, strings.Replace(webhook, "url: 'https://a'", "service: {name: a, namespace: b}", 1), "clientConfig.service is not supported for static manifests"},
		"twice":                  {policies, policy + "---\n" + policy, "duplicate name"},
		"a field nobody knows":   {policies, strings.Replace(policy, "spec:\n", "spec:\n  other: 1\n", 1), `unknown field "spec.other"`},
		"a hook without effects": {hooks, strings.Replace(webhook, ", sideEffects: None", "", 1), "webhooks[0].sideEffects: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
			kind := map[string]string{policies: "ValidatingAdmissionPolicyConfiguration", hooks: "WebhookAdmissionConfiguration"}[tc.plugin]
			configuration := fmt.Appendf(nil, "apiVersion: apiserver.config.k8s.io/v1\nkind: %s\nstaticManifestsDir: %s\n", kind, dir)
			folder, err := Check(loaders, tc.plugin, configuration)
			if (err != nil) != (tc.words != "") || err != nil && !strings.Contains(err.Error(), tc.words) {
				t.Errorf("it says %v", err)
			}
			if tc.words == "" && folder != dir {
				t.Errorf("the folder is %q", folder)
			}
		})
	}
}

// TestConfigurations: no folder is no mistake, one that is not there is.
func TestConfigurations(t *testing.T) {
	loaders, err := Loaders(nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, words := range map[string]string{
		"": "",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\n":                               "",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nstaticManifestsDir: /nowhere\n": "admission plugin MutatingAdmissionWebhook: staticManifestsDir: Invalid value",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: WebhookAdmissionConfiguration\nkubeConfigFile: /nowhere\n":     "kubeConfigFile: ",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n":                                      "AdmissionConfiguration",
	} {
		folder, err := Check(loaders, hooks, []byte(text))
		if folder != "" || (err != nil) != (words != "") || err != nil && !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestMistakesAreTold: each once, until another one comes.
func TestMistakesAreTold(t *testing.T) {
	var log strings.Builder
	loaders, err := Loaders(slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, text := range []string{"kind: A", "kind: A", "kind: A\n---\nkind: B", policy, "kind: A"} {
		if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, _, _, err := loaders.LoadValidatingPolicyManifests(dir); (err == nil) != (text == policy) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if n := strings.Count(log.String(), "what was read before stays in force"); n != 2 { // the second one after it was right
		t.Errorf("it was told %d times: %s", n, log.String())
	}
}
