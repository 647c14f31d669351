package access

import (
	"encoding/base64"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestTheKeysOfTheFolderSign tokens at once, and are published under the names that they have in the folder.
func TestTheKeysOfTheFolderSign(t *testing.T) {
	cluster, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	ring := cluster.AccountKeys
	keys, err := followKeys(ring)
	if err != nil {
		t.Fatal(err)
	}
	issuer := tokens.NewIssuer(keys, tokens.DefaultIssuer)
	documents, err := issuer.Documents()
	if err != nil {
		t.Fatal(err)
	}
	check := func(step string) {
		t.Helper()
		token, err := issuer.IssueLegacy(&corev1.ServiceAccount{}, &corev1.Secret{})
		head, _, _ := strings.Cut(token, ".")
		says, _ := base64.RawURLEncoding.DecodeString(head)
		if err != nil || !strings.Contains(string(says), `"kid":"`+ring.IDs()[0]+`"`) {
			t.Errorf("%s: a token begins %s (%v), want key %q", step, says, err, ring.IDs()[0])
		}
		recorder := httptest.NewRecorder()
		documents[tokens.KeySetPath].ServeHTTP(recorder, httptest.NewRequest("GET", tokens.KeySetPath, nil))
		published := recorder.Body.String()
		for _, id := range ring.IDs() {
			if !strings.Contains(published, `"`+id+`"`) {
				t.Errorf("%s: key %q is not published", step, id)
			}
		}
		if got := strings.Count(published, `"kid"`); got != len(ring.IDs()) {
			t.Errorf("%s: %d keys are published, want %d", step, got, len(ring.IDs()))
		}
		if keys() != keys() {
			t.Errorf("%s: keys are made for each request", step)
		}
	}
	check("before")
	text, err := trust.NewAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	old := ring.IDs()[0]
	fresh, err := ring.Add(text)
	if err != nil {
		t.Fatal(err)
	}
	check("added")
	if err := ring.Use(fresh); err != nil {
		t.Fatal(err)
	}
	check("used")
	if err := errors.Join(ring.Drop(old), ring.Drop(old)); err != nil {
		t.Fatal(err)
	}
	check("dropped")
}
