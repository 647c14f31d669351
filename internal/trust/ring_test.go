package trust_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// A rotated is one of the secrets of a cluster that may have several values.
type rotated struct {
	file string
	of   func(*trust.Cluster) *trust.Ring[trust.AccountKey]
	make func() ([]byte, error)
	// former is how versions that know one value read the file.
	former func(text []byte) error
}

var rotatedSecrets = map[string]rotated{
	"service account key": {"sa.key", func(c *trust.Cluster) *trust.Ring[trust.AccountKey] { return c.AccountKeys }, trust.NewAccountKey, formerKey},
}

var errFormer = errors.New("an earlier version does not start")

// formerKey reads the first block of a file and nothing else, as versions did before there were several.
func formerKey(text []byte) error {
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return errFormer
	}
	_, err := x509.ParseECPrivateKey(block.Bytes)
	return err
}

func eachRotated(t *testing.T, test func(t *testing.T, secret rotated, cluster *trust.Cluster, dir string)) {
	for name, secret := range rotatedSecrets {
		t.Run(name, func(t *testing.T) {
			cluster, dir := founder(t)
			test(t, secret, cluster, dir)
		})
	}
}

func added(t *testing.T, secret rotated, ring *trust.Ring[trust.AccountKey]) string {
	t.Helper()
	text, err := secret.make()
	if err != nil {
		t.Fatal(err)
	}
	id, err := ring.Add(text)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := ring.Add(text); again != id || err != nil {
		t.Errorf("added again: %q, %v", again, err)
	}
	return id
}

// TestASecretIsReplaced step by step: after each step the folder has what the ring has, only its owner can read it, a server that
// joins then gets all of it, and steps that are repeated change nothing.
func TestASecretIsReplaced(t *testing.T) {
	eachRotated(t, func(t *testing.T, secret rotated, cluster *trust.Cluster, dir string) {
		ring := secret.of(cluster)
		old := ring.IDs()[0]
		fresh := added(t, secret, ring)
		check := func(step string, former error, want ...string) {
			t.Helper()
			if got := ring.IDs(); !slices.Equal(got, want) {
				t.Errorf("%s: %q, want %q", step, got, want)
			}
			loaded, err := trust.LoadCluster(dir)
			if err != nil {
				t.Fatalf("%s: %v", step, err)
			}
			if got := secret.of(loaded).IDs(); !slices.Equal(got, want) {
				t.Errorf("%s: the folder has %q, want %q", step, got, want)
			}
			text, err := os.ReadFile(filepath.Join(dir, "pki", secret.file))
			if err != nil {
				t.Fatal(err)
			}
			if got := secret.former(text); !errors.Is(got, former) {
				t.Errorf("%s: an earlier version: %v, want %v", step, got, former)
			}
			onlyOurs(t, filepath.Join(dir, "pki"))
			if got := secret.of(joiner(t, cluster)).IDs(); !slices.Equal(got, want) {
				t.Errorf("%s: a server that joins has %q, want %q", step, got, want)
			}
		}
		check("added", nil, old, fresh)
		for range 2 {
			if err := ring.Use(fresh); err != nil {
				t.Fatal(err)
			}
			check("used", errFormer, fresh, old)
		}
		for range 2 {
			if err := ring.Drop(old); err != nil {
				t.Fatal(err)
			}
			check("dropped", nil, fresh)
		}
	})
}

// joiner is a server that joins with what all share.
func joiner(t *testing.T, cluster *trust.Cluster) *trust.Cluster {
	t.Helper()
	shared, err := cluster.Shared()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "trust")
	if err := trust.Adopt(dir, shared, cluster.CA.Pin(), next, time.Now()); err != nil {
		t.Fatal(err)
	}
	joined, err := trust.LoadCluster(dir)
	if err != nil {
		t.Fatal(err)
	}
	return joined
}

// TestServersOfOneFolderReplaceASecret: each takes all steps, and finds those of the other done.
func TestServersOfOneFolderReplaceASecret(t *testing.T) {
	eachRotated(t, func(t *testing.T, secret rotated, cluster *trust.Cluster, dir string) {
		other, err := trust.LoadCluster(dir)
		if err != nil {
			t.Fatal(err)
		}
		text, err := secret.make()
		if err != nil {
			t.Fatal(err)
		}
		old, fresh := secret.of(cluster).IDs()[0], ""
		for _, step := range []func(ring *trust.Ring[trust.AccountKey]) error{
			func(ring *trust.Ring[trust.AccountKey]) (err error) { fresh, err = ring.Add(text); return err },
			func(ring *trust.Ring[trust.AccountKey]) error { return ring.Use(fresh) },
			func(ring *trust.Ring[trust.AccountKey]) error { return ring.Drop(old) },
		} {
			for _, ring := range []*trust.Ring[trust.AccountKey]{secret.of(cluster), secret.of(other)} {
				if err := step(ring); err != nil {
					t.Fatal(err)
				}
			}
			if a, b := secret.of(cluster).IDs(), secret.of(other).IDs(); !slices.Equal(a, b) {
				t.Errorf("one has %q, the other one %q", a, b)
			}
		}
	})
}

// TestStepsThatARingRefuses leave everything as it was.
func TestStepsThatARingRefuses(t *testing.T) {
	eachRotated(t, func(t *testing.T, secret rotated, cluster *trust.Cluster, dir string) {
		ring, file := secret.of(cluster), filepath.Join(dir, "pki", secret.file)
		for range 3 {
			added(t, secret, ring)
		}
		before, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := secret.make()
		if err != nil {
			t.Fatal(err)
		}
		_, full := ring.Add(text)
		_, several := ring.Add(slices.Concat(text, text))
		_, broken := ring.Add(text[:len(text)/2])
		for name, refused := range map[string]struct{ got, want error }{
			"a fifth value":         {full, trust.ErrTooManyKeys},
			"an unknown one to use": {ring.Use("unknown"), trust.ErrNoKey},
			"the used one to drop":  {ring.Drop(ring.IDs()[0]), trust.ErrKeyInUse},
			"several in one text":   {several, several},
			"half a text":           {broken, broken},
		} {
			if refused.got == nil || !errors.Is(refused.got, refused.want) {
				t.Errorf("%s: %v, want %v", name, refused.got, refused.want)
			} else if strings.Contains(refused.got.Error(), "\n") || strings.Contains(refused.got.Error(), string(text[40:60])) {
				t.Errorf("%s is no sentence, or tells the secret: %v", name, refused.got)
			}
		}
		if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
			t.Errorf("the file has changed: %v", err)
		}
	})
}

// TestAChangeThatCannotBeSavedIsNone: what is used is what is on disk.
func TestAChangeThatCannotBeSavedIsNone(t *testing.T) {
	eachRotated(t, func(t *testing.T, secret rotated, cluster *trust.Cluster, dir string) {
		ring := secret.of(cluster)
		before := ring.IDs()
		if err := os.Rename(filepath.Join(dir, "pki"), filepath.Join(dir, "away")); err != nil {
			t.Fatal(err)
		}
		text, err := secret.make()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ring.Add(text); err == nil {
			t.Error("it says that it was saved")
		}
		if got := ring.IDs(); !slices.Equal(got, before) {
			t.Errorf("%q, want %q", got, before)
		}
	})
}

// TestAClusterInMemoryReplacesASecret as others do.
func TestAClusterInMemoryReplacesASecret(t *testing.T) {
	for name, secret := range rotatedSecrets {
		t.Run(name, func(t *testing.T) {
			cluster, err := trust.NewCluster(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			ring := secret.of(cluster)
			old, fresh := ring.IDs()[0], added(t, secret, ring)
			if err := errors.Join(ring.Use(fresh), ring.Drop(old)); err != nil {
				t.Fatal(err)
			}
			if got := ring.IDs(); !slices.Equal(got, []string{fresh}) {
				t.Errorf("%q, want %q", got, fresh)
			}
		})
	}
}

// TestTheTextOfAKey is what another server adds, whose folder lacks it.
func TestTheTextOfAKey(t *testing.T) {
	eachRotated(t, func(t *testing.T, secret rotated, cluster *trust.Cluster, _ string) {
		ring := secret.of(cluster)
		for _, id := range []string{ring.IDs()[0], added(t, secret, ring)} {
			text, err := ring.Text(id)
			if err != nil {
				t.Fatal(err)
			}
			other, err := trust.NewCluster(time.Now())
			if err != nil {
				t.Fatal(err)
			}
			if got, err := secret.of(other).Add(text); err != nil || got != id {
				t.Errorf("added as %q, want %q: %v", got, id, err)
			}
		}
		if _, err := ring.Text("unknown"); !errors.Is(err, trust.ErrNoKey) {
			t.Errorf("a key that is not there: %v", err)
		}
	})
}

// TestACopyHasARingOfItsOwn: what one rotates changes nothing at the other.
func TestACopyHasARingOfItsOwn(t *testing.T) {
	origin, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	text, fresh, err := trust.MakeAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := origin.AccountKeys.Add(text); err != nil {
		t.Fatal(err)
	}
	before := origin.AccountKeys.IDs()
	other := origin.Copied()
	if err := errors.Join(origin.AccountKeys.Use(fresh), origin.AccountKeys.Drop(before[0])); err != nil {
		t.Fatal(err)
	}
	if got := other.AccountKeys.IDs(); !slices.Equal(got, before) {
		t.Errorf("the copy has %q, want %q", got, before)
	}
	if err := other.AccountKeys.Drop(fresh); err != nil {
		t.Fatal(err)
	}
	if got := origin.AccountKeys.IDs(); !slices.Equal(got, []string{fresh}) {
		t.Errorf("the origin has %q, want %q", got, fresh)
	}
}

// TestWhatStandsBehindAKeyIsLeftAlone: versions that knew one key read the first block of a file alone, whatever somebody had added behind it.
func TestWhatStandsBehindAKeyIsLeftAlone(t *testing.T) {
	cluster, dir := founder(t)
	file := filepath.Join(dir, "pki", "sa.key")
	key, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	former, err := trust.NewAccountKey()
	if err != nil {
		t.Fatal(err)
	}
	for name, behind := range map[string][]byte{
		"a certificate":    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: []byte("of the former cluster")}),
		"a former key":     former,
		"no block at all":  []byte("a note"),
		"a mark of others": slices.Concat(pem.EncodeToMemory(&pem.Block{Type: "FORMER KEYS"}), former),
	} {
		if err := os.WriteFile(file, slices.Concat(key, behind), 0o600); err != nil {
			t.Fatal(err)
		}
		loaded, err := trust.LoadCluster(dir)
		if err != nil || !slices.Equal(loaded.AccountKeys.IDs(), cluster.AccountKeys.IDs()) {
			t.Errorf("%s: the folder does not start as before: %v", name, err)
		}
	}
}
