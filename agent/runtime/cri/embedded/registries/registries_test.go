package registries

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
)

// write makes files below a folder, which it returns.
func write(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// shown are the places of a registry, with what matters of them.
func shown(all []Endpoint) (texts []string) {
	for _, e := range all {
		text := e.String()
		if e.Own {
			text += " own"
		}
		if e.DigestsOnly {
			text += " digests"
		}
		if e.Auth != nil {
			text += " as " + e.Auth.Username
		}
		texts = append(texts, text)
	}
	return texts
}

const k3s = `
mirrors:
  docker.io:
    endpoint: ["https://mirror.example.com:5000", "http://cache.example.com/v2/hub"]
    rewrite: {"^library/(.*)": "lib/$1"}
  plain.example.com:5000:
    endpoint: ["http://plain.example.com:5000"]
  "*":
    endpoint: ["https://all.example.com"]
configs:
  mirror.example.com:5000: {auth: {username: m, password: secret}}
  docker.io: {auth: {username: hub, password: secret}}
  quay.io: {auth: {username: q, password: secret}}
`

func TestTheFormOfK3s(t *testing.T) {
	c, err := Open(filepath.Join(write(t, map[string]string{"registries.yaml": k3s}), "registries.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	for registry, want := range map[string][]string{
		"index.docker.io":        {"https://mirror.example.com:5000/v2 as m", "http://cache.example.com/v2/hub", "https://index.docker.io/v2 own as hub"},
		"plain.example.com:5000": {"http://plain.example.com:5000/v2 own"},
		"quay.io":                {"https://all.example.com/v2", "https://quay.io/v2 own as q"},
		"localhost:5000":         {"https://all.example.com/v2", "http://localhost:5000/v2 own"},
	} {
		all, err := c.Endpoints(registry)
		if got := shown(all); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", registry, got, err, want)
		}
	}
	all, _ := c.Endpoints("docker.io")
	nginx, _ := name.ParseReference("docker.io/library/nginx:1")
	for i, want := range []string{"index.docker.io/lib/nginx:1", "index.docker.io/lib/nginx:1", "index.docker.io/library/nginx:1"} {
		if there, err := all[i].Reference(nginx); err != nil || there.Name() != want {
			t.Errorf("at %s: %v, %v", all[i], there, err)
		}
	}
}

func TestTheFormOfContainerd(t *testing.T) {
	c, err := Open(write(t, map[string]string{
		"docker.io/hosts.toml": `
server = "https://registry-1.docker.io"
[host."https://second.example.com"]
  capabilities = ["pull"]
[host."http://first.example.com:5000/v2/hub"]
  capabilities = ["pull", "resolve"]
  override_path = true
  [host."http://first.example.com:5000/v2/hub".header]
    x-team = ["a", "b"]
[host."https://uploads.example.com"]
  capabilities = ["push"]
`,
		"plain.example.com_5000_/hosts.toml": `server = "http://plain.example.com:5000"`,
		"_default/hosts.toml":                `[host."https://all.example.com"]`,
		"notes/README":                       "no registry",
	}))
	if err != nil {
		t.Fatal(err)
	}
	for registry, want := range map[string][]string{
		"index.docker.io": {
			"https://second.example.com/v2 digests", "http://first.example.com:5000/v2/hub", "https://registry-1.docker.io/v2 own",
		},
		"plain.example.com:5000": {"http://plain.example.com:5000/v2 own"},
		"quay.io":                {"https://all.example.com/v2", "https://quay.io/v2 own"},
	} {
		all, err := c.Endpoints(registry)
		if got := shown(all); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %q, %v, want %q", registry, got, err, want)
		}
	}
	all, _ := c.Endpoints("docker.io")
	tag, _ := name.ParseReference("docker.io/library/nginx:1")
	digest, _ := name.ParseReference("docker.io/library/nginx@sha256:" + strings.Repeat("a", 64))
	if _, err := all[0].Reference(tag); err == nil {
		t.Error("a host that may not resolve is asked for a tag")
	}
	if there, err := all[0].Reference(digest); err != nil || there.Name() != digest.Name() {
		t.Errorf("%v, %v", there, err)
	}
}

// TestWhatIsRefused, without its secrets.
func TestWhatIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ file, text, want string }{
		"unknown field":      {"registries.yaml", "mirror: {}", "mirror"},
		"no URL":             {"registries.yaml", "mirrors: {a: {endpoint: ['ftp://x']}}", "want http:// or https://"},
		"secrets in a URL":   {"registries.yaml", "mirrors: {a: {endpoint: ['https://me:secret@x']}}", "want http:// or https://"},
		"bad expression":     {"registries.yaml", "mirrors: {a: {endpoint: ['https://x'], rewrite: {'(': b}}}", "rewrite"},
		"missing file":       {"registries.yaml", "configs: {a: {tls: {ca_file: /no/such}}}", "/no/such"},
		"no certificate":     {"registries.yaml", "configs: {a: {auth: {password: secret}, tls: {ca_file: /proc/self/comm}}}", "/proc/self/comm"},
		"unknown TOML field": {"a/hosts.toml", "[host.'https://x']\ndial_timeout = '1s'", "dial_timeout: not supported"},
		"TOML with a bad ca": {"a/hosts.toml", "ca = 5", "ca: want a text"},
		"TOML, bad client":   {"a/hosts.toml", "client = [['a', 'b', 'c']]", "client: want"},
		"TOML, no TOML":      {"a/hosts.toml", "[[", "hosts.toml"},
		"TOML for all":       {"_default/hosts.toml", "ca = 5", "ca: want a text"},
		"TOML, no URL":       {"a/hosts.toml", "[host.'ftp://x']", `host "ftp://x"`},
	} {
		dir := write(t, map[string]string{test.file: test.text})
		if test.file == "registries.yaml" {
			dir = filepath.Join(dir, test.file)
		}
		if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %q", name, err, test.want)
		}
	}
	if _, err := Open("/no/such"); err == nil {
		t.Error("a path that is not there")
	}
}

// TestCredentials: the pod's are for the registry alone.
func TestCredentials(t *testing.T) {
	pod, written := authn.AuthConfig{Username: "pod"}, authn.AuthConfig{Username: "written"}
	none := authn.AuthConfig{}
	for _, c := range []struct {
		at       Endpoint
		pod, got authn.AuthConfig
	}{
		{Endpoint{Own: true}, pod, pod}, {Endpoint{Own: true}, none, none},
		{Endpoint{Own: true, Auth: &written}, pod, pod}, {Endpoint{Own: true, Auth: &written}, none, written},
		{Endpoint{}, pod, none}, {Endpoint{Auth: &written}, pod, written},
	} {
		if got := c.at.Credentials(c.pod); got != c.got {
			t.Errorf("own %v, written %v, pod %q: %q", c.at.Own, c.at.Auth != nil, c.pod.Username, got.Username)
		}
	}
}

// TestRequestsAreLed to the mirror's root, with its headers and its authority; those for other hosts are left alone.
func TestRequestsAreLed(t *testing.T) {
	var asked []string
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+" "+r.URL.String()+" "+strings.Join(r.Header["X-Team"], "+"))
	})
	mirror := httptest.NewTLSServer(handler)
	defer mirror.Close()
	tokens := httptest.NewServer(handler)
	defer tokens.Close()
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: mirror.Certificate().Raw})
	text := `[host."` + mirror.URL + `/hub"]
override_path = true
ca = "ca.crt"
header = {x-team = ["a", "b"]}`
	dir := write(t, map[string]string{"quay.io/hosts.toml": text, "quay.io/ca.crt": string(authority)})
	all, err := fromFolder(dir, "quay.io")
	if err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{"https://quay.io/v2/", "https://quay.io/v2/team/app/manifests/1?a=b", tokens.URL + "/token"} {
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		answer, err := all[0].Transport.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
	}
	host := strings.TrimPrefix(mirror.URL, "https://")
	want := []string{
		host + " /hub/?ns=quay.io a+b", host + " /hub/team/app/manifests/1?a=b&ns=quay.io a+b", strings.TrimPrefix(tokens.URL, "http://") + " /token ",
	}
	if !reflect.DeepEqual(asked, want) {
		t.Errorf("asked %q, want %q", asked, want)
	}
}
