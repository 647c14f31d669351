package install

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// TestPurge takes the data of both roles and the keys, wherever the settings say that they are, and says so before and after.
func TestPurge(t *testing.T) {
	b := newBench(t)
	for file, text := range map[string]string{
		"/etc/setpoint/server.env": "SETPOINT_NAME=x\nSETPOINT_DATA_DIR=/srv/server\nSETPOINT_TRUST_DIR=/srv/keys\n",
		"/etc/setpoint/agent.env":  "SETPOINT_DATA_DIR=/srv/agent/\n",
		"/srv/server/server.lock":  "", "/srv/agent/agent.lock": "", "/srv/other/file": "", "/usr/local/bin/setpoint": "",
	} {
		b.write(t, file, text)
	}
	if _, err := trust.InitCluster(b.files.path("/srv/keys"), []trust.Server{{Name: "x", Endpoint: "b:6443"}}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(b.files.path("/etc/setpoint"), b.files.path("/srv/settings")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../srv/settings", b.files.path("/etc/setpoint")); err != nil {
		t.Fatal(err)
	}
	var said string
	if err := b.uninstall(t.Context(), true, func(what string) error { said = what; return nil }); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"/srv/server", "/srv/agent", "/srv/keys", "/etc/setpoint"} {
		if !strings.Contains(said, dir) || !strings.Contains(b.out.String(), "removed "+dir+"\n") {
			t.Errorf("it does not say that %s goes: %s%s", dir, said, &b.out)
		}
	}
	left, err := filepath.Glob(b.files.path("/srv/*"))
	if err != nil || len(left) != 1 || exists(b.files.path("/etc/setpoint")) || exists(b.files.path(binaryFile)) {
		t.Errorf("%v is left, %v", left, err)
	}
}

// TestPurgeLeavesWhatIsOthers: a folder that a setting names by mistake, and a program that was not installed.
func TestPurgeLeavesWhatIsOthers(t *testing.T) {
	for _, dir := range []string{"/", "/var/lib", "/home/me", "/etc", "/root/", "relative"} {
		for _, key := range []string{keyData, keyTrust} {
			b := newBench(t)
			b.write(t, "/etc/setpoint/server.env", key+"="+dir+"\n")
			b.write(t, filepath.Join(dir, "pki/ca.key"), "")
			b.write(t, filepath.Join(dir, "server.lock"), "")
			err := b.uninstall(t.Context(), true, func(string) error { t.Errorf("%s=%s: it asks", key, dir); return errNotConfirmed })
			if !errors.Is(err, errNotOurs) {
				t.Errorf("%s=%s: %v", key, dir, err)
			}
		}
	}
	b := newBench(t)
	b.write(t, binaryFile, "")
	if err := b.uninstall(context.Background(), false, nil); err != nil || !exists(b.files.path(binaryFile)) {
		t.Errorf("nothing was installed, and the binary is gone: %v", err)
	}
}

func (b *bench) write(t *testing.T, file, text string) {
	t.Helper()
	path := b.files.path(file)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
