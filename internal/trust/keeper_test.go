package trust

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/utils/clock"
)

// TestServersRenewForYears: the certificates of a server that is never restarted, and of
// the kubeconfigs in its folder, never come near their end.
func TestServersRenewForYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, self := t.TempDir(), Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}
		s, log := certified(t, dir, self, time.Now())
		for range 15 { // of a hundred days
			time.Sleep(100 * 24 * time.Hour)
			synctest.Wait()
			for _, c := range s.Expiries() {
				if left := time.Until(c.Expires); left < ExpiryWarning {
					t.Fatalf("%s: the certificate of the %s has %s left", time.Now(), c.Name, left)
				}
			}
		}
		if log.String() == "" || strings.Contains(log.String(), "level=WARN") || strings.Contains(log.String(), "level=ERROR") {
			t.Errorf("%s", log)
		}
		loaded, err := LoadCluster(dir)
		if err != nil {
			t.Fatal(err)
		}
		kubeconfig, err := os.ReadFile(filepath.Join(dir, AdminKubeconfig))
		if err != nil {
			t.Fatal(err)
		}
		want, err := Kubeconfig(loaded.Admin, []Server{self})
		if err != nil || !bytes.Equal(kubeconfig, want) || time.Until(loaded.Admin.Expires()) < ExpiryWarning {
			t.Errorf("the kubeconfig is not that of today's administrator (%v)", err)
		}
	})
}

// TestElevenYears: of a server that is never restarted, and whose authority a person replaces when he is told of it. He is told while all
// other certificates are far from their end, once, and at no time is a certificate shown that clients do not believe.
func TestElevenYears(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, log := certified(t, t.TempDir(), Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}, time.Now())
		ring, first, rotated := s.cluster.CA.Ring(), s.cluster.CA.Ring().IDs()[0], time.Time{}
		for end := time.Now().Add(11 * 365 * 24 * time.Hour); time.Now().Before(end); time.Sleep(7 * 24 * time.Hour) {
			synctest.Wait()
			judgeShown(t, s)
			switch soon := soonOf(s); {
			case len(soon) > 0 && rotated.IsZero() && len(soon) == 1 && soon[0].Kind == KindAuthority:
				rotated = time.Now()
				text, id, err := MakeAuthority(time.Now())
				if err == nil {
					_, err = ring.Add(text)
				}
				if err := errors.Join(err, ring.Use(id), s.FollowAuthorities(time.Now())); err != nil {
					t.Fatal(err)
				}
				judgeShown(t, s)
			case len(soon) > 0:
				t.Fatalf("%s: %v end soon", time.Now(), soon)
			case !rotated.IsZero() && len(ring.IDs()) > 1:
				if err := errors.Join(ring.Drop(first), s.FollowAuthorities(time.Now())); err != nil {
					t.Fatal(err)
				}
			}
		}
		if rotated.IsZero() || len(ring.IDs()) != 1 || ring.IDs()[0] == first {
			t.Errorf("rotated at %s: %v", rotated, ring.IDs())
		}
		if strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), "certificate=authority") {
			t.Errorf("%s", log)
		}
	})
}

func soonOf(s *Keeper) (soon []Expiry) {
	for _, e := range s.Expiries() {
		if e.EndsSoon(time.Now()) {
			soon = append(soon, e)
		}
	}
	return soon
}

// judgeShown fails if those who believe the cluster's authorities do not believe what the server shows.
func judgeShown(t *testing.T, s *Keeper) {
	t.Helper()
	shown, err := ParseCertificate(s.live.Identity().CertPEM)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.cluster.CA.CertPEM())
	if _, err := shown.Verify(x509.VerifyOptions{Roots: roots}); err != nil {
		t.Fatalf("%s: %v", time.Now(), err)
	}
}

// TestWhatNobodyRenewsIsWarnedOf: the authority ends after ten years.
func TestWhatNobodyRenewsIsWarnedOf(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issued := time.Now().Add(-9 * 365 * 24 * time.Hour) // the server was off since
		s, log := certified(t, t.TempDir(), Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}, issued)
		end := s.cluster.CA.Expires()
		if left := time.Until(s.live.Identity().Expires()); left < 300*24*time.Hour {
			t.Errorf("a server whose certificate had ended began with one of %s", left)
		}
		synctest.Wait() // it has warned of what it began with
		log.Reset()
		time.Sleep(time.Until(end.Add(-AuthorityWarning - 2*24*time.Hour)))
		synctest.Wait()
		if strings.Contains(log.String(), "ends soon") {
			t.Errorf("warned too early:\n%s", log)
		}
		time.Sleep(5 * 24 * time.Hour)
		synctest.Wait()
		warnings := strings.Count(log.String(), "certificate=authority")
		if warnings < 2 || warnings > 4 {
			t.Errorf("%d warnings in three days", warnings)
		}
	})
}

// logText is what was logged; the keeper writes while the test reads.
type logText struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logText) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *logText) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Reset()
}

// certified is a server of which only the certificates are kept, until the test ends.
func certified(t *testing.T, dir string, self Server, issued time.Time) (*Keeper, *logText) {
	t.Helper()
	trust, err := InitCluster(dir, []Server{self}, issued)
	if err != nil {
		t.Fatal(err)
	}
	log := &logText{}
	s, err := NewKeeper(trust, self, clock.RealClock{}, slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); s.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s, log
}

// TestACertificateIsRenewedWhenItIsOrdered: however long the one in use is valid, and what is shown is what the folder has.
func TestACertificateIsRenewedWhenItIsOrdered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, self := t.TempDir(), Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}
		s, _ := certified(t, dir, self, time.Now())
		before, issued := s.live.Identity(), s.Issued()
		if issued.Sub(time.Now()).Abs() > time.Second {
			t.Errorf("it was made now, and says %s", issued)
		}
		time.Sleep(time.Hour)
		if err := s.Renew(time.Now()); err != nil {
			t.Fatal(err)
		}
		after := s.live.Identity()
		if bytes.Equal(before.CertPEM, after.CertPEM) || bytes.Equal(before.KeyPEM, after.KeyPEM) || s.Issued().Sub(time.Now()).Abs() > time.Second {
			t.Errorf("it was not renewed: made %s", s.Issued())
		}
		saved, err := s.cluster.LoadServer(self.Name)
		if err != nil || !bytes.Equal(saved.CertPEM, after.CertPEM) || !bytes.Equal(saved.KeyPEM, after.KeyPEM) {
			t.Errorf("the folder has another one: %v", err)
		}
		if err := os.Rename(filepath.Join(dir, "pki"), filepath.Join(dir, "away")); err != nil {
			t.Fatal(err)
		}
		if err := s.Renew(time.Now()); err == nil || !bytes.Equal(s.live.Identity().KeyPEM, after.KeyPEM) {
			t.Errorf("one that cannot be saved is used: %v", err)
		}
	})
}
