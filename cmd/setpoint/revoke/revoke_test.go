package revoke

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

func TestOrders(t *testing.T) {
	pin := strings.Repeat("ab", 32)
	for text, want := range map[string]string{
		"node/worker-3":                 "node/worker-3",
		"token/abcdef":                  "token/abcdef",
		"token/abcdef.0123456789abcdef": "token/abcdef",
		"token/node." + pin + ".abcdef0123456789abcdef": "token/abcdef",
		"token/e30.eyJqdGkiOiIwYy1hYmMifQ.c2lnbg":       "token/0c-abc",
		"token/e30.e30.c2lnbg":                          "has no id",
		"token/a.*.b":                                   "cannot be read",
		"worker-3":                                      "want node/NAME",
	} {
		target, err := Parse(text, "")
		if got := target.String(); err != nil && !strings.Contains(err.Error(), want) || err == nil && got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
}

// TestTheKeyOfACertificate is the same however it is given.
func TestTheKeyOfACertificate(t *testing.T) {
	dir := t.TempDir()
	cluster, err := trust.InitCluster(dir, []trust.Server{{Name: "server-1", Endpoint: "192.0.2.1:6443"}}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := trust.ParseCertificate(cluster.Admin.CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	want := trust.KeyHash(certificate.RawSubjectPublicKeyInfo)
	for _, from := range []string{want, filepath.Join(dir, "pki", "admin.crt"), filepath.Join(dir, trust.AdminKubeconfig)} {
		if target, err := Parse("user/admin", from); err != nil || target.Key != want {
			t.Errorf("%s: %v, %v", from, target, err)
		}
	}
	for text, want := range map[string]string{"": "no client certificate", "apiVersion: v1\nkind: Config\n": "no client certificate"} {
		file := filepath.Join(dir, "other")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := KeyOf(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Parse("node/a", want); !errors.Is(err, revocation.ErrTarget) {
		t.Error(err)
	}
}

// TestChange: each order says what came of it, and one that meets another's change is carried out on that.
func TestChange(t *testing.T) {
	client, now := fake.NewClientset(), time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	conflicts := 2
	client.PrependReactor("update", "configmaps", func(clienttesting.Action) (bool, runtime.Object, error) {
		if conflicts--; conflicts >= 0 {
			return true, nil, apierrors.NewConflict(schema.GroupResource{Resource: "configmaps"}, revocation.ConfigMapName, errors.New("changed"))
		}
		return false, nil, nil
	})
	for _, step := range []struct {
		target string
		undo   bool
		want   string
	}{
		{"node/a", true, "node/a is not revoked"},
		{"node/a", false, "node/a is revoked"},
		{"node/a", false, "node/a was revoked already, on 2026-11-29T04:00:00Z"},
		{"user/jane", false, "user/jane is revoked"},
		{"node/a", true, "node/a is no longer revoked"},
		{"node/a", true, "node/a is not revoked"},
	} {
		target, err := Parse(step.target, "")
		if err != nil {
			t.Fatal(err)
		}
		result, err := Change(t.Context(), client, target, step.undo, now)
		if err != nil || result.Line() != step.want {
			t.Errorf("%s: %q, %v", step.target, result.Line(), err)
		}
		now = now.Add(time.Hour)
	}
	entries, err := List(t.Context(), client)
	if got := fmt.Sprint(entries); err != nil || len(entries) != 1 || entries[0].Target != "user/jane" {
		t.Errorf("%s, %v", got, err)
	}
	conflicts = 2 * ConflictsMax
	if _, err := Change(t.Context(), client, revocation.Target{Kind: revocation.Node, Name: "b"}, false, now); !errors.Is(err, ErrConflicts) {
		t.Error(err)
	}
}

// TestAnotherServerIsAsked when one would shut itself out.
func TestAnotherServerIsAsked(t *testing.T) {
	refused := apierrors.NewForbidden(schema.GroupResource{Resource: "configmaps"}, "x", errors.New("this server would shut itself out: ask another one"))
	var timeout interface{ Timeout() bool }
	if err := Elsewhere(refused); !errors.As(err, &timeout) || errors.As(err, new(apierrors.APIStatus)) || !strings.Contains(err.Error(), "ask another one") {
		t.Errorf("%#v", err)
	}
	if other := errors.New("other"); Elsewhere(other) != other || Elsewhere(nil) != nil { //nolint:errorlint // the same error
		t.Error("others are passed on")
	}
}
