package trust_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/setpoint-io/setpoint/internal/trust"
)

var (
	first = trust.Server{Name: "server-1", Endpoint: "192.0.2.1:6443"}
	next  = trust.Server{Name: "server-2", Endpoint: "192.0.2.2:6443"}
)

// founder is a cluster whose founding is noted, and its folder.
func founder(t *testing.T) (*trust.Cluster, string) {
	t.Helper()
	dir := t.TempDir()
	cluster, err := trust.InitCluster(dir, []trust.Server{first}, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Shared(); !errors.Is(err, trust.ErrNotShared) {
		t.Errorf("before the founding: %v", err)
	}
	if err := cluster.Founded().Save([]byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	return cluster, dir
}

// TestAServerInventsNoSecret where the others have none: nobody else would know it.
func TestAServerInventsNoSecret(t *testing.T) {
	cluster, from := founder(t)
	optional := []string{"node.token", "encryption.yaml"}
	for _, name := range optional {
		if err := os.Remove(filepath.Join(from, "pki", name)); err != nil {
			t.Fatal(err)
		}
	}
	shared, err := cluster.Shared()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := trust.Adopt(dir, shared, cluster.CA.Pin(), next, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, name := range optional {
		if _, err := os.Stat(filepath.Join(dir, "pki", name)); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("it has %s: %v", name, err)
		}
	}
	if _, err := trust.LoadCluster(dir); err != nil {
		t.Error(err)
	}
}

// TestAServerAdoptsWhatAllShare: the keys of all, none of another server's, and its own; nobody else can read them.
func TestAServerAdoptsWhatAllShare(t *testing.T) {
	cluster, from := founder(t)
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
	if joined.CA.Pin() != cluster.CA.Pin() || !slices.Equal(joined.AccountKeys.IDs(), cluster.AccountKeys.IDs()) || !slices.Equal(joined.GossipKeys.IDs(), cluster.GossipKeys.IDs()) {
		t.Error("it has other keys")
	}
	if id, err := joined.LoadServer(next.Name); err != nil || id.Expires().IsZero() {
		t.Errorf("it has no certificate of its own: %v", err)
	}
	if _, err := joined.LoadServer(first.Name); !errors.Is(err, trust.ErrNoServer) {
		t.Errorf("it has another server's key: %v", err)
	}
	for _, name := range []string{"encryption.yaml", "founded.json", "node.token"} {
		theirs, err1 := os.ReadFile(filepath.Join(from, "pki", name))
		ours, err2 := os.ReadFile(filepath.Join(dir, "pki", name))
		if err1 != nil || err2 != nil || string(theirs) != string(ours) {
			t.Errorf("%s differs: %v, %v", name, err1, err2)
		}
	}
	onlyOurs(t, dir)
	if !joined.Joining() {
		t.Error("it does not know that it is no member yet")
	}
	if err := errors.Join(joined.Joined(), joined.Joined()); err != nil || joined.Joining() {
		t.Errorf("it does not know that it is a member: %v", err)
	}
	if err := trust.Adopt(dir, shared, cluster.CA.Pin(), next, time.Now()); !errors.Is(err, trust.ErrOccupied) {
		t.Errorf("a folder with keys: %v", err)
	}
}

// TestAServerAdoptsTheKeysOfGossip as they are after replacements: all of them, and the name of the pool, which the key in use does not
// tell. What one server adds is what another one calls the same.
func TestAServerAdoptsTheKeysOfGossip(t *testing.T) {
	cluster, _ := founder(t)
	text, fresh, err := trust.MakeGossipKey()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.GossipKeys.Add(text); err != nil {
		t.Fatal(err)
	}
	if again, err := cluster.GossipKeys.Text(fresh); err != nil || string(again) != string(text) {
		t.Errorf("its text is another one: %v", err)
	}
	if err := cluster.GossipKeys.Use(fresh); err != nil {
		t.Fatal(err)
	}
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
	if diff := cmp.Diff(cluster.GossipKeys.Told(), joined.GossipKeys.Told()); diff != "" {
		t.Error(diff)
	}
	onlyOurs(t, dir)
}

// onlyOurs looks at the modes of all that is in a folder.
func onlyOurs(t *testing.T, dir string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if open := info.Mode().Perm() & 0o077; open != 0 && filepath.Ext(path) != ".crt" {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestATornFolderIsNone: what an earlier try left is no folder, and does not hinder the next one.
func TestATornFolderIsNone(t *testing.T) {
	cluster, _ := founder(t)
	shared, err := cluster.Shared()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	torn := filepath.Join(dir, ".joining", "pki")
	if err := errors.Join(os.MkdirAll(torn, 0o700), os.WriteFile(filepath.Join(torn, "ca.key"), []byte("half"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if _, err := trust.LoadCluster(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a torn folder: %v", err)
	}
	if err := trust.Adopt(dir, shared, cluster.CA.Pin(), next, time.Now()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, ".joining")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

// TestWhatIsNotSharedIsNotAdopted: a folder is made of these files, of the right authority, or not at all.
func TestWhatIsNotSharedIsNotAdopted(t *testing.T) {
	cluster, _ := founder(t)
	other, _ := founder(t)
	foreign, err := other.Shared()
	if err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(trust.Shared){
		"of another cluster": func(s trust.Shared) { s["ca.crt"], s["ca.key"] = foreign["ca.crt"], foreign["ca.key"] },
		"a mixed pair":       func(s trust.Shared) { s["ca.key"] = foreign["ca.key"] },
		"a file too few":     func(s trust.Shared) { delete(s, "sa.key") },
		"a file too many":    func(s trust.Shared) { s["../../etc/passwd"] = []byte("x") },
		"too large":          func(s trust.Shared) { s["founded.json"] = make([]byte, trust.SharedBytesMax) },
	} {
		shared, err := cluster.Shared()
		if err != nil {
			t.Fatal(err)
		}
		spoil(shared)
		dir := t.TempDir()
		if err := trust.Adopt(dir, shared, cluster.CA.Pin(), next, time.Now()); !errors.Is(err, trust.ErrBadShared) {
			t.Errorf("%s: %v", name, err)
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("%s: it left %v (%v)", name, left, err)
		}
	}
	inMemory, err := trust.NewCluster(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := inMemory.Shared(); !errors.Is(err, trust.ErrNotShared) {
		t.Errorf("a cluster without a folder: %v", err)
	}
}
