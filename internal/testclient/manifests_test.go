package testclient

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestKustomize: what is for kustomize is told by its content, so that an object which a cluster serves is never left out.
func TestKustomize(t *testing.T) {
	for name, test := range map[string]struct{ file, text, kind, says string }{
		"of kustomize":            {"kustomization.yaml", "resources: [a.yaml]", "", errNothing.Error()},
		"of kustomize, with kind": {"kustomization.yml", "{kind: Kustomization, resources: []}", "", errNothing.Error()},
		"its configuration":       {"kustomizeconfig.yaml", "nameReference: []", "", errNothing.Error()},
		"under another name":      {"all.yaml", "{apiVersion: kustomize.config.k8s.io/v1alpha1, kind: Component}", "", errNothing.Error()},
		"of Flux":                 {"kustomization.yaml", "{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization}", "Kustomization", ""},
		"an object":               {"kustomization.yaml", "{apiVersion: v1, kind: Service}", "Service", ""},
		"an object of no version": {"kustomization.yaml", "kind: Service", "", "an object without apiVersion or kind"},
		"an object of no kind":    {"all.yaml", "nameReference: []", "", "an object without apiVersion or kind"},
		"an empty file":           {"all.yaml", "# nothing", "", errNothing.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			write(t, filepath.Join(folder, test.file), test.text)
			for _, path := range []string{folder, filepath.Join(folder, test.file)} {
				all, err := read(path)
				if test.says != "" && (err == nil || !strings.Contains(err.Error(), test.says)) {
					t.Errorf("said %v, want %q", err, test.says)
				}
				if test.kind != "" && (err != nil || len(all) != 1 || all[0].GetKind() != test.kind) {
					t.Errorf("read %v (%v), want a %s", all, err, test.kind)
				}
			}
		})
	}
}

// TestRead: of what stands beside webhook configurations, Services alone are passed over, and an error leaves nothing half read.
func TestRead(t *testing.T) {
	folder := t.TempDir()
	hooks, wrong := filepath.Join(folder, "hooks.yaml"), filepath.Join(folder, "wrong.yaml")
	write(t, hooks, "apiVersion: v1\nkind: Service\n---\napiVersion: serving.knative.dev/v1\nkind: Service\n---\n"+
		"apiVersion: a/v1\nkind: ValidatingAdmissionPolicy\n---\napiVersion: a/v1\nkind: MutatingWebhookConfiguration\n")
	write(t, wrong, "kind: Service")
	listed, err := Read(nil, []string{hooks})
	if err != nil || len(listed.webhooks) != 3 || listed.webhooks[0].GetAPIVersion() != "serving.knative.dev/v1" || !listed.HasWebhooks() {
		t.Errorf("read %v (%v)", listed.webhooks, err)
	}
	for _, webhooks := range [][]string{{hooks, wrong}, {wrong}} {
		if listed, err := Read([]string{hooks}, webhooks); err == nil || listed.crds != nil || listed.webhooks != nil {
			t.Errorf("read %v (%v) beside an error", listed, err)
		}
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
