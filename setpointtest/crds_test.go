package setpointtest_test

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestWrongCRDs: each way to write one wrongly is told at the caller's line, with what is wrong.
func TestWrongCRDs(t *testing.T) {
	text, err := os.ReadFile("testdata/crd/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	const about = "Config.CRDs: CustomResourceDefinition shops.example.com: "
	right := string(text)
	for name, tc := range map[string]struct{ old, wrong, says string }{
		"no YAML":         {"spec:\n  group", "spec:\n group", "shop.yaml: "},
		"no kind":         {"kind: CustomResourceDefinition\n", "", "shop.yaml: an object without apiVersion or kind"},
		"an old version":  {"k8s.io/v1\n", "k8s.io/v1beta1\n", about + "the cluster does not serve version v1beta1 of it: write apiVersion: apiextensions.k8s.io/v1"},
		"another name":    {"name: shops.example.com", "name: stores.example.com", `metadata.name: Invalid value: "stores.example.com": must be spec.names.plural+"."+spec.group`},
		"no scope":        {"  scope: Namespaced\n", "", about + `CustomResourceDefinition.apiextensions.k8s.io "shops.example.com" is invalid: spec.scope: Required value`},
		"a wrong scope":   {"Namespaced", "Everywhere", `spec.scope: Unsupported value: "Everywhere"`},
		"no schema":       {right[strings.Index(right, "    schema:"):], "", "spec.versions[0].schema.openAPIV3Schema: Required value"},
		"no type":         {"            type: object\n            properties", "            properties", "openAPIV3Schema.properties[spec].type: Required value"},
		"nothing stored":  {"storage: true", "storage: false", "must have exactly one version marked as storage version"},
		"an unknown type": {"type: integer", "type: number-like", `Unsupported value: "number-like"`},
		"a wrong rule": {"properties:\n              size", "x-kubernetes-validations: [{rule: 'self.sise > 1'}]\n            properties:\n              size",
			"undefined field 'sise'"},
		"a webhook of nobody": {"  scope:", "  conversion: {strategy: Webhook}\n  scope:", "spec.conversion.webhookClientConfig: Required value"},
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "shop.yaml")
			if err := os.WriteFile(file, []byte(strings.Replace(right, tc.old, tc.wrong, 1)), 0o600); err != nil {
				t.Fatal(err)
			}
			said := failure(t, func(t testing.TB) {
				setpointtest.Start(t, setpointtest.Config{CRDs: []string{file}, Loops: setpointtest.APIOnly})
			})
			if !strings.Contains(said, tc.says) {
				t.Errorf("it said %q\nand not    %q", said, tc.says)
			}
		})
	}
	t.Run("names of another", func(t *testing.T) {
		other := strings.NewReplacer("name: shops.", "name: stores.", "plural: shops", "plural: stores").Replace(right)
		said := failure(t, func(t testing.TB) {
			file := filepath.Join(t.TempDir(), "both.yaml")
			if err := os.WriteFile(file, []byte(right+"---\n"+other), 0o600); err != nil {
				t.Fatal(err)
			}
			setpointtest.Start(t, setpointtest.Config{CRDs: []string{file}, Loops: setpointtest.APIOnly})
		})
		// Whichever is looked at first has the names.
		says := regexp.MustCompile(`the CRD (shops|stores)\.example\.com is not established: another CRD or kind has its names`)
		if !says.MatchString(said) {
			t.Errorf("it said %q\nand not    %q", said, says)
		}
	})
}

// TestKubebuilder: the folders of its projects can be listed as they are, kustomize's files included.
func TestKubebuilder(t *testing.T) {
	crd, err := os.ReadFile("testdata/crd/shop.yaml")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{
		"crd/kustomization.yaml": "resources: [bases/shop.yaml]\n", "crd/kustomizeconfig.yaml": "nameReference: []\n", "crd/bases/shop.yaml": string(crd),
		"webhook/kustomization.yaml": "resources: [manifests.yaml, service.yaml]\n", "webhook/kustomizeconfig.yaml": "namespace: []\n",
		"webhook/service.yaml": "{apiVersion: v1, kind: Service, metadata: {name: webhook-service, namespace: system}, spec: {ports: [{port: 443}]}}\n",
		"webhook/manifests.yaml": "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: shops}, webhooks: [" +
			"{name: shops.example.com, admissionReviewVersions: [v1], sideEffects: None, rules: []," +
			" clientConfig: {service: {name: webhook-service, namespace: system, path: /validate}}}]}\n",
		"webhook/policy.yaml": "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: shops}, spec: {" +
			"matchConstraints: {resourceRules: [{apiGroups: [example.com], apiVersions: [v1], operations: [CREATE], resources: [shops]}]}," +
			" validations: [{expression: 'true'}]}}\n",
	} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	c := setpointtest.Start(t, setpointtest.Config{CRDs: []string{"crd/bases"}, Webhooks: []string{"webhook"}, Loops: setpointtest.APIOnly})
	c.Eventually("validatingwebhookconfiguration/shops")
	c.Eventually("validatingadmissionpolicy/shops")
	for says, config := range map[string]setpointtest.Config{
		`file that is not for kustomize, in "crd": its folders, which are not read, are ["bases"]`: {CRDs: []string{"crd"}},
		`Config.Webhooks: there is no webhook configuration in ["webhook/service.yaml"]`:           {Webhooks: []string{"webhook/service.yaml"}},
	} {
		if said := failure(t, func(t testing.TB) { setpointtest.Start(t, config) }); !strings.Contains(said, says) {
			t.Errorf("it said %q\nand not    %q", said, says)
		}
	}
}
