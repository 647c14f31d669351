package apiserver

import (
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestAnotherFrontProxyAuthority: an aggregated server that believes what it was told last answers in each step of a rotation, over
// connections that it has already, too.
func TestAnotherFrontProxyAuthority(t *testing.T) {
	server, f := newAggregatingServer(t)
	ca, err := trust.NewCA(time.Now()) // whom clients are told of is of no concern here
	if err != nil {
		t.Fatal(err)
	}
	f.register(server, "stable.example.com", 2000, metav1.ConditionTrue)
	eventually(t, "it is passed on", func() bool { return call{path: remotePath}.do(t, server).code == http.StatusOK })
	answers := func(step string) {
		t.Helper()
		if got := (call{path: remotePath}).do(t, server); got.code != http.StatusOK {
			t.Errorf("%s: %d %s", step, got.code, got.body)
		}
	}
	first := f.authorities.Used().ID()
	text, fresh, err := trust.MakeFrontProxy(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.authorities.Add(text); err != nil {
		t.Fatal(err)
	}
	answers("added, and nobody told")
	f.readTold(ca)
	answers("told of both")
	if err := f.authorities.Use(fresh); err != nil {
		t.Fatal(err)
	}
	answers("the new one is used")
	if told, err := f.identity.Configuration(ca); err != nil || !f.identity.IsTold(told) || f.identity.IsTold(nil) {
		t.Error("what was told is not known")
	}
	if err := f.authorities.Drop(first); err != nil {
		t.Fatal(err)
	}
	f.readTold(ca)
	answers("the old one is dropped")
}
