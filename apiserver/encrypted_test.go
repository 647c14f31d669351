package apiserver

import (
	"crypto/sha256"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/storage/value"
	"k8s.io/apiserver/pkg/storage/value/encrypt/secretbox"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// secretKeys encrypts Secrets with the first key.
type secretKeys struct{ names []string }

func (k *secretKeys) Generation() uint64 { return 0 }

func (k *secretKeys) For(gr schema.GroupResource) value.Transformer {
	if gr.Resource != "secrets" {
		return nil
	}
	var all []value.PrefixTransformer
	for _, name := range k.names {
		all = append(all, value.PrefixTransformer{Prefix: []byte("k8s:enc:secretbox:v1:" + name + ":"), Transformer: secretbox.NewSecretboxTransformer(sha256.Sum256([]byte(name)))})
	}
	return value.NewPrefixTransformers(errors.New("no matching prefix found"), all...)
}

const (
	secretsPath = "/api/v1/namespaces/default/secrets"
	secretBody  = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"s"},"data":{"a":"aA=="}}`
)

func newEncryptingServer(t *testing.T) (*Server, *secretKeys) {
	t.Helper()
	log, keys := raftstoretest.NewLocal(state.Options{}), &secretKeys{[]string{"one"}}
	_, err := log.Propose(t.Context(), command.Command{Ops: []command.Op{{Kind: command.SetFeatureLevel, Revision: raftstore.EncryptedValuesLevel}}})
	if err != nil {
		t.Fatal(err)
	}
	config := serverConfig(t, log)
	config.Storage.Encrypt(keys)
	server, _ := startServer(t, config)
	return server, keys
}

// Ciphertexts differ each time, but a write that changes nothing is none, unless the key has changed.
func TestAWriteOfTheSameSecret(t *testing.T) {
	server, keys := newEncryptingServer(t)
	created := mustDo[corev1.Secret](t, server, call{method: "POST", path: secretsPath, body: secretBody})
	patch := call{method: "PATCH", path: secretsPath + "/s", body: `{"data":{"a":"aA=="}}`, contentType: "application/merge-patch+json"}
	for _, again := range []call{{method: "PUT", path: secretsPath + "/s", body: secretBody}, patch} {
		if same := mustDo[corev1.Secret](t, server, again); same.ResourceVersion != created.ResourceVersion {
			t.Errorf("%s wrote", again.method)
		}
	}
	keys.names = []string{"two", "one"}
	turned := mustDo[corev1.Secret](t, server, patch)
	if turned.ResourceVersion == created.ResourceVersion {
		t.Error("not written with the new key")
	}
	if same := mustDo[corev1.Secret](t, server, patch); same.ResourceVersion != turned.ResourceVersion {
		t.Error("written twice with the new key")
	}
}

// What nobody can read goes only if somebody who may says so, in upstream's way.
func TestUnreadableSecrets(t *testing.T) {
	server, keys := newEncryptingServer(t)
	mustDo[corev1.Secret](t, server, call{method: "POST", path: secretsPath, body: secretBody})
	keys.names = []string{"two"}
	unsafe := `{"kind":"DeleteOptions","apiVersion":"v1","ignoreStoreReadErrorWithClusterBreakingPotential":true}`
	editor := &user.DefaultInfo{Name: "jane"}
	for _, c := range []struct {
		name string
		call call
		code int
		says string
	}{
		{"get", call{path: secretsPath + "/s"}, 500, "unable to transform key"},
		{"list", call{path: secretsPath}, 500, "failed to read one or more secrets from the storage"},
		{"create", call{method: "POST", path: secretsPath, body: secretBody}, 500, "unable to transform key"},
		{"put", call{method: "PUT", path: secretsPath + "/s", body: secretBody}, 500, "unable to transform key"},
		{"delete", call{method: "DELETE", path: secretsPath + "/s"}, 500, "unable to transform key"},
		{"delete all", call{method: "DELETE", path: secretsPath}, 500, "failed to read"},
		{"delete unsafely, by somebody", call{method: "DELETE", path: secretsPath + "/s", body: unsafe, as: editor}, 403, "forbidden"},
		{"delete unsafely on trial", call{method: "DELETE", path: secretsPath + "/s?dryRun=All", body: strings.Replace(unsafe, "true", `true,"dryRun":["All"]`, 1)}, 200, ""},
		{"still there", call{path: secretsPath + "/s"}, 500, "unable to transform key"},
		{"delete unsafely", call{method: "DELETE", path: secretsPath + "/s", body: unsafe}, 200, ""},
		{"gone", call{path: secretsPath + "/s"}, 404, "not found"},
		{"delete unsafely what can be read", call{method: "DELETE", path: "/api/v1/namespaces/default/serviceaccounts/default", body: unsafe}, 409, "unsafe deletion is not allowed because the object is decodable from storage"},
	} {
		if got := c.call.do(t, server); got.code != c.code || !strings.Contains(got.body, c.says) {
			t.Errorf("%s: %d %s", c.name, got.code, got.body)
		}
	}
}
