package trust

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
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
	s, err := NewKeeper(trust, self, time.Now(), slog.New(slog.NewTextHandler(log, nil)))
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
