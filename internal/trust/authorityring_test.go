package trust

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// TestTheAuthorityIsReplaced step by step, while a server goes on: whoever believes the old one alone is served until it is dropped, whoever
// believes the new one alone from when it is believed, and certificates of each count as long as it is believed.
func TestTheAuthorityIsReplaced(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, []Server{testServer}, now))
	keeper := must[*Keeper](t)(NewKeeper(cluster, testServer, clock.RealClock{}, slog.New(slog.DiscardHandler)))
	api := must[*tls.Config](t)(keeper.Live().ServerConfig())
	_, encryption, err := cluster.CA.EncryptionKey()
	if err != nil {
		t.Fatal(err)
	}
	first, firstPEM, proxies := cluster.CA.Pin(), cluster.CA.CertPEM(), must[*CA](t)(cluster.CA.FrontProxy()).CertPEM()
	old := must[*Identity](t)(cluster.CA.IssueNode("a", now))
	locked := must[[]byte](t)(Locker{cluster.CA}.Lock("test", []byte("text"), nil))
	text, second, err := MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	ring := cluster.CA.Ring()
	secondPEM := []byte(must[*CA](t)(authoritiesOnly(text)).CertPEM())
	follow := func(err error) {
		t.Helper()
		if err := errors.Join(err, keeper.FollowAuthorities(now)); err != nil {
			t.Fatal(err)
		}
	}
	served := func(when string, own *Identity, caPEM []byte, want bool) {
		t.Helper()
		client := *own
		client.CAPEM = caPEM
		config := must[*tls.Config](t)(must[*Live](t)(NewLive(&client)).ClientConfig()) // it shows its certificate whatever the server believes
		config.ServerName = "server-1"
		serverErr, clientErr := handshake(api, config)
		if got := serverErr == nil && clientErr == nil; got != want {
			t.Errorf("%s: served %t, want %t: %v, %v", when, got, want, serverErr, clientErr)
		}
	}
	served("before", old, firstPEM, true)

	_, err = ring.Add(text)
	follow(err)
	served("trust, who believes the old one", old, firstPEM, true)
	served("trust, who believes the new one", old, secondPEM, true)
	if cluster.CA.Pin() != first {
		t.Error("another one signs already")
	}

	follow(ring.Use(second))
	fresh := must[*Identity](t)(cluster.CA.IssueNode("a", now))
	served("use, who believes the old one", old, firstPEM, true)
	served("use, who believes the new one", fresh, secondPEM, true)
	served("use, the new certificate, who believes the old one", fresh, firstPEM, true)
	if leaf := must[*x509.Certificate](t)(ParseCertificate(keeper.Live().Identity().CertPEM)); !cluster.CA.hasSigned(leaf) {
		t.Error("the server's certificate is of the old one")
	}
	loaded := must[*Cluster](t)(LoadCluster(dir))
	if loaded.CA.Pin() != second || !loaded.CA.Holds(first) || loaded.CA.ClusterID() != first {
		t.Errorf("the folder has %v", loaded.CA.Ring().IDs())
	}
	plain := must[*CA](t)(ParseCA(must[[]byte](t)(os.ReadFile(filepath.Join(dir, "pki", "ca.crt"))), must[[]byte](t)(os.ReadFile(filepath.Join(dir, "pki", "ca.key")))))
	if plain.Pin() != second {
		t.Error("ca.crt is not the one that signs")
	}

	follow(ring.Drop(first))
	served("drop, the old certificate", old, secondPEM, false)
	served("drop, who believes the old one", fresh, firstPEM, false)
	served("drop", fresh, secondPEM, true)
	_, after, err := cluster.CA.EncryptionKey()
	if err != nil || after != encryption || cluster.CA.ClusterID() != first || !bytes.Equal(must[*CA](t)(cluster.CA.FrontProxy()).CertPEM(), proxies) {
		t.Errorf("what follows from the first one has changed: %v", err)
	}
	if _, err := (Locker{cluster.CA}).Unlock("test", locked, nil); !errors.Is(err, ErrLocked) {
		t.Errorf("what the dropped one has locked: %v", err)
	}
	kubeconfig := must[[]byte](t)(os.ReadFile(filepath.Join(dir, AdminKubeconfig)))
	want := must[[]byte](t)(Kubeconfig(cluster.Admin, []Server{testServer}))
	if !bytes.Equal(kubeconfig, want) || !bytes.Equal(cluster.Admin.CAPEM, secondPEM) {
		t.Errorf("the administrator's kubeconfig is not of the new one:\n%s", kubeconfig)
	}
	again := must[*Cluster](t)(InitCluster(dir, []Server{testServer}, now))
	if again.CA.Pin() != second || again.CA.Holds(first) || again.NodeToken != (tokens.Token{}) {
		t.Errorf("started again: %v, %v", again.CA.Ring().IDs(), again.NodeToken)
	}
	if err := again.Founded().Save([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := again.Shared(); err != nil {
		t.Errorf("a server that joins: %v", err)
	}
}

// TestDroppedAuthoritiesAreRemembered: by the folder, by what another server gets of it, and by a copy. A token of any of them is none, and
// keeps nobody from starting.
func TestDroppedAuthoritiesAreRemembered(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, []Server{testServer}, now))
	first := cluster.CA.Pin()
	replace := func() (dropped string) {
		t.Helper()
		dropped = cluster.CA.Pin()
		text, next, err := MakeAuthority(now)
		if err != nil {
			t.Fatal(err)
		}
		ring := cluster.CA.Ring()
		if _, err := ring.Add(text); err != nil || cluster.CA.Dropped(dropped) || cluster.CA.Dropped(next) {
			t.Fatalf("nothing is dropped yet: %v", err)
		}
		if err := errors.Join(ring.Use(next), ring.Drop(dropped)); err != nil {
			t.Fatal(err)
		}
		return dropped
	}
	replace()
	token := filepath.Join(dir, "pki", "node.token")
	if err := os.Remove(token); err != nil {
		t.Fatal(err)
	}
	cluster = must[*Cluster](t)(InitCluster(dir, []Server{testServer}, now))
	if cluster.NodeToken.Pin != cluster.CA.Pin() {
		t.Fatal("it makes no other token")
	}
	second := replace()
	if err := cluster.Founded().Save([]byte("{}")); err != nil {
		t.Fatal(err)
	}
	shared := must[*CA](t)(must[Shared](t)(cluster.Shared()).authority())
	loaded := must[*Cluster](t)(LoadCluster(dir))
	if loaded.NodeToken != (tokens.Token{}) || loaded.NodeToken.ID() != "" || loaded.NodeToken.Key() != "" {
		t.Error("there is a token of one that was dropped")
	}
	for what, ca := range map[string]*CA{"same": cluster.CA, "loaded": loaded.CA, "shared": shared, "copied": cluster.CA.copied()} {
		if !ca.Dropped(first) || !ca.Dropped(second) || ca.Dropped(ca.Pin()) || ca.Dropped("other") {
			t.Errorf("%s: it remembers %v", what, ca.former(ca.current().all))
		}
	}
	foreign := must[tokens.Token](t)(tokens.New(tokens.RoleNode, strings.Repeat("0", 64)))
	if err := os.WriteFile(token, []byte(foreign.Text()), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadCluster(dir); !errors.Is(err, tokens.ErrBad) {
		t.Errorf("a token of another cluster: %v", err)
	}
}

// TestAnAuthorityThatComesIsNotDropped: whoever asks while a new authority comes is never told that it was dropped: what a rotation says of it would not be followed.
func TestAnAuthorityThatComesIsNotDropped(t *testing.T) {
	now := time.Now()
	ca := must[*CA](t)(NewCA(now))
	for range 20 {
		text, next, err := MakeAuthority(now)
		if err != nil {
			t.Fatal(err)
		}
		var wrong atomic.Int64
		var asking sync.WaitGroup
		come := make(chan struct{})
		asking.Go(func() {
			for {
				if ca.Dropped(next) {
					wrong.Add(1)
				}
				select {
				case <-come:
					return
				default:
				}
			}
		})
		before := ca.Pin()
		_, err = ca.Ring().Add(text)
		close(come)
		asking.Wait()
		if err != nil || wrong.Load() > 0 {
			t.Fatalf("dropped while it came: %d times; %v", wrong.Load(), err)
		}
		if err := errors.Join(ca.Ring().Use(next), ca.Ring().Drop(before)); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAKubeconfigThatIsNone is told of, and the others follow nevertheless.
func TestAKubeconfigThatIsNone(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cluster := must[*Cluster](t)(InitCluster(dir, []Server{testServer}, now))
	if err := os.WriteFile(filepath.Join(dir, "a.kubeconfig"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	text, next, err := MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	_ = must[string](t)(cluster.CA.Ring().Add(text))
	if err := cluster.CA.Ring().Use(next); err != nil {
		t.Fatal(err)
	}
	if err := cluster.followAuthorities(now); err == nil || !strings.Contains(err.Error(), "a.kubeconfig") {
		t.Errorf("told: %v", err)
	}
	admin := must[*Identity](t)(cluster.readIdentity(cluster.path(fileAdminCert), cluster.path(fileAdminKey)))
	want := must[[]byte](t)(Kubeconfig(admin, []Server{testServer}))
	if got := must[[]byte](t)(os.ReadFile(filepath.Join(dir, AdminKubeconfig))); !bytes.Equal(got, want) {
		t.Error("the file behind it was not renewed")
	}
}

// authoritiesOnly is a CA of a text of MakeAuthority.
func authoritiesOnly(text []byte) (*CA, error) {
	all, _, err := parseAuthorities(text)
	if err != nil {
		return nil, err
	}
	return caOf(all, all[0]), nil
}

// TestAnAgentKeepsTheOrder: the authority of its own certificate is first, which earlier releases believe alone.
func TestAnAgentKeepsTheOrder(t *testing.T) {
	now := time.Now()
	ca := must[*CA](t)(NewCA(now))
	own := must[*Identity](t)(ca.IssueNode("a", now))
	text, second, err := MakeAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	_ = must[string](t)(ca.Ring().Add(text))
	if caPEM, signs, err := SignerFirst(own, ca.CertPEM()); err != nil || !signs || !bytes.Equal(caPEM, ca.CertPEM()) {
		t.Errorf("trust: %t, %v", signs, err)
	}
	before := ca.CertPEM()
	if err := ca.Ring().Use(second); err != nil {
		t.Fatal(err)
	}
	if caPEM, signs, err := SignerFirst(own, ca.CertPEM()); err != nil || signs || !bytes.Equal(caPEM, before) {
		t.Errorf("use: %t, %v", signs, err)
	}
}

// TestFilesOfAuthorities: whatever is none is refused, and no key is in the error.
func TestFilesOfAuthorities(t *testing.T) {
	text, _, err := MakeAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	other, _, err := MakeAuthority(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	twice := bytes.Replace(text, []byte("["), append([]byte("["), append(text[len(`{"authorities":[`):len(text)-2], ',')...), 1)
	mixed := append(bytes.Clone(text[:len(text)/3]), other[len(text)/3:]...)
	for name, bad := range map[string][]byte{"nothing": nil, "none": []byte(`{}`), "twice": twice, "mixed": mixed, "no JSON": []byte("-----BEGIN")} {
		if all, _, err := parseAuthorities(bad); err == nil || bytes.Contains([]byte(err.Error()), []byte("BEGIN")) {
			t.Errorf("%s: %d, %v", name, len(all), err)
		}
	}
}
