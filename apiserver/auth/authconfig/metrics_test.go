package authconfig

import (
	"crypto/sha256"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

// TestKeysAreMeasured: upstream's metric says when the keys of an issuer were fetched, and by which server.
func TestKeysAreMeasured(t *testing.T) {
	i := newIssuerServer(t)
	file := filepath.Join(t.TempDir(), "authentication.yaml")
	if err := os.WriteFile(file, []byte(header+"jwt:"+i.section(plain)), 0o600); err != nil {
		t.Fatal(err)
	}
	a, err := New(t.Context(), Config{File: file, Server: "server-7", OwnIssuer: "https://own.example", Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	await(t, a.current.Load())
	if got := (&world{Authentication: a}).user(t, i.token(t, nil)); got == "" {
		t.Fatal("the issuer's user cannot come in")
	}
	families, err := legacyregistry.DefaultGatherer.Gather()
	if err != nil {
		t.Fatal(err)
	}
	server := fmt.Sprintf("sha256:%x", sha256.Sum256([]byte("server-7")))
	for _, f := range families {
		if f.GetName() == "apiserver_authentication_jwt_authenticator_jwks_fetch_last_timestamp_seconds" && strings.Contains(fmt.Sprint(f), server) {
			return
		}
	}
	t.Error("nothing says when the keys were fetched")
}
