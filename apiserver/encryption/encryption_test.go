package encryption

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/storage/value"

	"github.com/setpoint-io/setpoint/internal/trust"
)

const header = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	text       = []byte("c4n4ry")
	key        = value.DefaultContext("/core/secrets/n/a")
)

type world struct {
	t      *testing.T
	config Config
	said   *bytes.Buffer
}

func newWorld(t *testing.T) *world {
	said := &bytes.Buffer{}
	return &world{t, Config{
		OwnFile: filepath.Join(t.TempDir(), "encryption.yaml"), OwnKey: Key{"own", sha256.Sum256([]byte("own"))},
		Logger: slog.New(slog.NewTextHandler(said, nil)),
	}, said}
}

// rule encrypts resources with the keys of a provider, the first one first; without
// keys, with the provider as it is.
func rule(resources, provider string, keys ...string) string {
	text := fmt.Sprintf("- resources: [%s]\n  providers:\n", resources)
	if len(keys) == 0 {
		return text + "  - " + provider + ": {}\n"
	}
	text += "  - " + provider + ":\n      keys:\n"
	for _, name := range keys {
		secret := sha256.Sum256([]byte(name))
		text += fmt.Sprintf("      - {name: %s, secret: %s}\n", name, base64.StdEncoding.EncodeToString(secret[:]))
	}
	return text
}

func (w *world) write(path, rules string) {
	w.t.Helper()
	if err := os.WriteFile(path, []byte(header+rules), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// given makes the administrator's file.
func (w *world) given(rules string) {
	if w.config.File == "" {
		w.config.File = filepath.Join(w.t.TempDir(), "given.yaml")
	}
	w.write(w.config.File, rules)
}

func (w *world) start() *Encryption {
	w.t.Helper()
	e, err := New(w.t.Context(), w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func seal(t *testing.T, e *Encryption, gr schema.GroupResource) []byte {
	t.Helper()
	sealed, err := e.For(gr).TransformToStorage(t.Context(), text, key)
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// open says how a value is read: "", "outdated", or why not.
func open(t *testing.T, e *Encryption, gr schema.GroupResource, sealed []byte) string {
	t.Helper()
	plain, outdated, err := e.For(gr).TransformFromStorage(t.Context(), sealed, key)
	switch {
	case err != nil:
		return err.Error()
	case !bytes.Equal(plain, text):
		return string(plain)
	case outdated:
		return "outdated"
	default:
		return ""
	}
}

func TestSecretsByDefault(t *testing.T) {
	e := newWorld(t).start()
	sealed := seal(t, e, secrets)
	if bytes.Contains(sealed, text) || !bytes.HasPrefix(sealed, []byte("k8s:enc:secretbox:v1:own:")) {
		t.Errorf("%q", sealed)
	}
	if got := open(t, e, secrets, sealed); got != "" {
		t.Error(got)
	}
	if got := open(t, e, secrets, text); got != "outdated" {
		t.Errorf("what is not encrypted yet: %s", got)
	}
	if e.For(configMaps) != nil {
		t.Error("other kinds are touched")
	}
	if err := e.CheckPlugins(t.Context()); err != nil {
		t.Error(err)
	}
}

// A trust folder from before there was the file encrypts with the key that the file has.
func TestTheFileOfATrustFolderChangesNothing(t *testing.T) {
	trust, err := trust.InitCluster(t.TempDir(), nil, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	name, secret, err := trust.CA.EncryptionKey()
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t)
	w.config.OwnKey = Key{name, secret}
	without := w.start()
	w.config.OwnFile, w.config.OwnKey = trust.EncryptionFile(), Key{}
	with := w.start()
	if info, err := os.Stat(trust.EncryptionFile()); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	for from, to := range map[*Encryption]*Encryption{with: without, without: with} {
		if got := open(t, to, secrets, seal(t, from, secrets)); got != "" {
			t.Error(got)
		}
	}
}

func TestTheAdministratorsConfiguration(t *testing.T) {
	w := newWorld(t)
	before := seal(t, w.start(), secrets)
	for name, c := range map[string]struct {
		rules           string
		secret, another string // how they begin
	}{
		"another provider":  {rule("secrets", "aesgcm", "g"), "k8s:enc:aesgcm:v1:g:", ""},
		"another resource":  {rule("configmaps", "aescbc", "c"), "k8s:enc:secretbox:v1:own:", "k8s:enc:aescbc:v1:c:"},
		"everything":        {rule("'*.*'", "secretbox", "s"), "k8s:enc:secretbox:v1:s:", "k8s:enc:secretbox:v1:s:"},
		"encryption is off": {rule("secrets", "identity"), string(text), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w.given(c.rules)
			e := w.start()
			if sealed := seal(t, e, secrets); !bytes.HasPrefix(sealed, []byte(c.secret)) {
				t.Errorf("a Secret is %q", sealed)
			} else if got := open(t, e, secrets, sealed); got != "" {
				t.Error(got)
			}
			if e.For(configMaps) != nil || c.another != "" {
				if sealed := seal(t, e, configMaps); !bytes.HasPrefix(sealed, []byte(c.another)) {
					t.Errorf("a ConfigMap is %q", sealed)
				}
			}
			if got := open(t, e, secrets, before); got != "" && got != "outdated" {
				t.Errorf("what was encrypted before: %s", got)
			}
			if outdated := open(t, e, secrets, before) == "outdated"; outdated == strings.HasPrefix(c.secret, "k8s:enc:secretbox:v1:own:") {
				t.Errorf("outdated: %v", outdated)
			}
		})
	}
}

func TestFilesThatChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.config.Reload = true
		w.given(rule("configmaps", "secretbox", "one"))
		e := w.start()
		go e.Run(t.Context())
		first := seal(t, e, configMaps)
		for _, c := range []struct{ file, rules, want string }{
			{w.config.File, rule("configmaps", "secretbox", "two", "one"), "k8s:enc:secretbox:v1:two:"},
			{w.config.File, rule("configmaps", "secretboxes", "three"), "k8s:enc:secretbox:v1:two:"}, // a mistake changes nothing
			{w.config.File, rule("configmaps", "secretbox", "four", "one"), "k8s:enc:secretbox:v1:four:"},
		} {
			w.write(c.file, c.rules)
			time.Sleep(3 * reloadInterval)
			synctest.Wait()
			if sealed := seal(t, e, configMaps); !bytes.HasPrefix(sealed, []byte(c.want)) {
				t.Errorf("%s: %q", c.rules, sealed)
			}
			if got := open(t, e, configMaps, first); got != "outdated" {
				t.Errorf("by the former key: %s", got)
			}
		}
		if n := strings.Count(w.said.String(), "was not taken"); n != 1 || e.Generation() != 2 {
			t.Errorf("the mistake was told %d times, generation %d: %s", n, e.Generation(), w.said)
		}
		secret := sha256.Sum256([]byte("one"))
		if strings.Contains(w.said.String(), base64.StdEncoding.EncodeToString(secret[:])) {
			t.Error("a key in the log")
		}
		// The cluster's own file may come later, and turns the key.
		w.write(w.config.OwnFile, rule("secrets", "secretbox", "new", "own"))
		time.Sleep(2 * reloadInterval)
		synctest.Wait()
		if sealed := seal(t, e, secrets); !bytes.HasPrefix(sealed, []byte("k8s:enc:secretbox:v1:new:")) {
			t.Errorf("%q", sealed)
		}
	})
}

// As upstream: without the flag, the administrator's file is read at the start only.
func TestWithoutReloading(t *testing.T) {
	w := newWorld(t)
	w.given(rule("secrets", "secretbox", "one"))
	e := w.start()
	w.given(rule("secrets", "secretbox", "two"))
	if err := e.files.Look(t.Context()); err != nil || !bytes.Contains(seal(t, e, secrets), []byte(":one:")) {
		t.Errorf("reloaded: %v", err)
	}
}

func TestMistakes(t *testing.T) {
	for name, rules := range map[string]string{
		"no text":            "}",
		"a short key":        "- resources: [secrets]\n  providers: [{secretbox: {keys: [{name: a, secret: YWJj}]}}]\n",
		"an unknown field":   "- resources: [secrets]\n  provider: []\n",
		"no provider":        "- resources: [secrets]\n  providers: []\n",
		"KMS v1":             "- resources: [secrets]\n  providers: [{kms: {apiVersion: v1, name: k, endpoint: unix:///k}}]\n",
		"an endpoint abroad": "- resources: [secrets]\n  providers: [{kms: {apiVersion: v2, name: k, endpoint: 'http://k'}}]\n",
		"two rules":          rule("'*.*'", "secretbox", "a") + rule("secrets", "secretbox", "b"),
	} {
		w := newWorld(t)
		w.given(rules)
		ctx, cancel := context.WithCancel(t.Context())
		if _, err := New(ctx, w.config); err == nil {
			t.Errorf("%s: taken", name)
		}
		if err := w.config.Validate(); err == nil || !strings.HasPrefix(err.Error(), "--encryption-provider-config: ") {
			t.Errorf("%s: the flag is said to be right: %v", name, err)
		}
		cancel()
	}
	w := newWorld(t)
	w.config.File = "/nowhere"
	if _, err := New(t.Context(), w.config); err == nil {
		t.Error("no file: taken")
	}
	if err := (Options{Reload: true}).Validate(); err == nil {
		t.Error("nothing to reload: taken")
	}
}
