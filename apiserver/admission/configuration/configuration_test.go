package configuration

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\nplugins:\n"

// read writes a file, one for a plugin beside it, and reads them.
func readText(t *testing.T, text string, added ...string) (Configuration, error) {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{"admission.yaml": text, "plugin.yaml": "of its own"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Read(filepath.Join(dir, "admission.yaml"), added)
}

// TestRead: a text is in the file or beside it.
func TestRead(t *testing.T) {
	c, err := readText(t, header+"- {name: PodSecurity, configuration: {a: 1}}\n- {name: EventRateLimit, path: plugin.yaml}\n", "EventRateLimit")
	if err != nil {
		t.Fatal(err)
	}
	if got := string(c.For("PodSecurity")); got != `{"a":1}` {
		t.Errorf("in the file: %s", got)
	}
	if got := string(c.For("EventRateLimit")); got != "of its own" {
		t.Errorf("beside it: %s", got)
	}
	if got := c.For("PodNodeSelector"); got != nil {
		t.Errorf("of another plugin: %s", got)
	}
	if c, err = Read("", nil); err != nil || c.For("PodSecurity") != nil {
		t.Errorf("without a file: %v", err)
	}
}

// TestRefusals: what would have no effect is refused by name.
func TestRefusals(t *testing.T) {
	for text, words := range map[string]string{
		header + "- {name: Nothing, configuration: {}}":                                               "plugins[0]: Nothing: there is no such plugin",
		header + "- {name: LimitRanger, configuration: {}}":                                           "LimitRanger: it takes no configuration",
		header + "- {name: PodNodeSelector, configuration: {}}":                                       "it is not enabled: add it to --enable-admission-plugins",
		header + "- {name: PodSecurity}":                                                              "it has neither a configuration nor a path",
		header + "- {name: PodSecurity, path: nowhere}":                                               "no such file",
		header + "- {name: PodSecurity, configuration: {}}\n- {name: PodSecurity, configuration: {}}": "plugins[1]: PodSecurity: it has two configurations",
		header + "- {name: PodSecurity, config: {}}":                                                  `unknown field "plugins[0].config"`,
		"podNodeSelectorPluginConfig: {}":                                                             "Object 'Kind' is missing",
		"apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\nauthorizers: []":   "expected AdmissionConfiguration",
	} {
		_, err := readText(t, text)
		if err == nil || !strings.Contains(err.Error(), words) || !strings.HasPrefix(err.Error(), "--admission-control-config-file: ") {
			t.Errorf("%s\n%v", text, err)
		}
	}
}
