package server

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/internal/trust/tokens"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// admin is an administrator's identity of the authorities of now, made for the test.
func (s *site) admin(t *testing.T) *trust.Identity {
	t.Helper()
	id, err := s.cluster.CA.IssueAdmin(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// replaceAuthority is `setpoint rotate ca --keep-old 0s`, to its end.
func (s *site) replaceAuthority(t *testing.T) {
	t.Helper()
	order := rotations.Order{Kind: rotation.CA, Order: rotations.Begin, KeepOld: &metav1.Duration{}}
	for ctx := t.Context(); ; order.Order, order.KeepOld = rotations.Status, nil {
		p, err := admin.OrderRotation(ctx, s.restConfig(s.admin(t)), order)
		if err == nil && p.Phase == rotation.Done {
			return
		}
		select { // a connection may end with the authority: the next try says the same
		case <-ctx.Done():
			t.Fatal(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// TestAServerThatMissedTheAuthority: one that has the keys and is no member yet is waited for by nobody, and gets the keys of now with a
// token of now; until one is let in its folder stays. With the token of then, one that is in starts again.
func TestAServerThatMissedTheAuthority(t *testing.T) {
	s := newSite(t)
	then := s.serverToken(t, 2)
	dir, err := s.joinAs(t, "server-2", "127.0.0.1:1", then.Token)
	if err != nil {
		t.Fatal(err)
	}
	first := s.cluster.CA.Pin()
	s.replaceAuthority(t)
	token, err := admin.CreateServerToken(t.Context(), s.restConfig(s.admin(t)), jointoken.Wanted{TTL: time.Hour, Nodes: 2})
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := tokens.Parse(token.Token)
	if err != nil || !trust.Outdated(dir, parsed) {
		t.Fatalf("its folder is not outdated: %v", err)
	}
	again := func(token string) error {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		return Join(ctx, JoinConfig{
			Servers: []string{s.self.Endpoint}, Token: token, Name: "server-2", AdvertiseAddress: "127.0.0.1:1", TrustDir: dir,
			Logger: slog.New(slog.DiscardHandler),
		})
	}
	if err := again("server." + parsed.Pin + ".aaaaaaaaaaaaaaaaaaaaaa"); err == nil {
		t.Error("a token that was made up lets it in")
	}
	if _, err := trust.LoadCluster(dir); err != nil {
		t.Errorf("it was not let in, and its folder is gone: %v", err)
	}
	if err := again(token.Token); err != nil {
		t.Fatal(err)
	}
	cluster, err := trust.LoadCluster(dir)
	if err != nil || !cluster.CA.Holds(parsed.Pin) || !cluster.CA.Dropped(first) || !cluster.Joining() {
		t.Fatalf("it has not got the keys of now: %v", err)
	}
	if err := again(token.Token); !errors.Is(err, trust.ErrOccupied) {
		t.Errorf("keys of now are replaced: %v", err)
	}
	file := filepath.Join(t.TempDir(), "token")
	o := &Options{TokenFile: file, Logger: slog.New(slog.DiscardHandler)}
	for text, want := range map[string]error{
		then.Token: nil, token.Token: nil, "node." + first[:60] + "0000.aaaaaaaaaaaaaaaaaaaaaa": errTokenFile,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := o.checkToken(cluster); !errors.Is(err, want) {
			t.Errorf("it starts again with another token: %v, want %v", err, want)
		}
	}
}
