package selinux

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const (
	ours = "system_u:object_r:container_file_t:s0:c1,c2"
	old  = "system_u:object_r:container_file_t:s0"
)

// files makes a volume beside a file of the host, to which a link in the volume leads.
func files(t *testing.T) (volume, host string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root: labels are attributes that only root may set")
	}
	dir := t.TempDir()
	volume, host = filepath.Join(dir, "volume"), filepath.Join(dir, "host")
	err := errors.Join(
		os.MkdirAll(filepath.Join(volume, "a", "b"), 0o755), os.WriteFile(filepath.Join(volume, "a", "b", "file"), nil, 0o600),
		os.Mkdir(host, 0o755), os.WriteFile(filepath.Join(host, "file"), nil, 0o600),
		os.Symlink(host, filepath.Join(volume, "link")), os.Symlink(filepath.Join(host, "file"), filepath.Join(volume, "a", "link")),
		unix.Mkfifo(filepath.Join(volume, "pipe"), 0o600), os.Symlink(volume, filepath.Join(dir, "by-link")),
		unix.Lsetxattr(host, attribute, []byte(old), 0), unix.Lsetxattr(filepath.Join(host, "file"), attribute, []byte(old), 0),
	)
	if err != nil {
		t.Fatal(err)
	}
	return volume, host
}

func labelOf(t *testing.T, path string) string {
	t.Helper()
	value := make([]byte, 100)
	n, err := unix.Lgetxattr(path, attribute, value)
	if err != nil && err != unix.ENODATA {
		t.Fatal(path, err)
	}
	return strings.TrimRight(string(value[:max(n, 0)]), "\x00") // with which the kernel ends it
}

func TestRelabel(t *testing.T) {
	volume, host := files(t)
	before := labelOf(t, volume)
	if err := Relabel(volume, ""); err != nil || labelOf(t, volume) != before {
		t.Error("no label changes nothing:", err)
	}
	if err := Relabel(filepath.Dir(volume)+"/by-link", ours); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"", "a", "a/b", "a/b/file", "a/link", "link", "pipe"} {
		if got := labelOf(t, filepath.Join(volume, name)); got != ours {
			t.Errorf("%q has %q", name, got)
		}
	}
	for _, path := range []string{host, host + "/file"} {
		if got := labelOf(t, path); got != old {
			t.Errorf("links were followed: %s has %q", path, got)
		}
	}
	if err := Relabel(host+"/file", ours); err != nil || labelOf(t, host+"/file") != ours {
		t.Error("a file by itself:", err)
	}
}

// TestRelabelLeavesAlone other file systems below a volume, those without labels, and the machine's own folders.
func TestRelabelLeavesAlone(t *testing.T) {
	volume, host := files(t)
	for source, target := range map[string]string{host: volume + "/a/b", host + "/file": volume + "/a/file"} {
		if err := os.WriteFile(volume+"/a/file", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = unix.Unmount(target, unix.MNT_DETACH) }()
	}
	if err := Relabel(volume, ours); err != nil {
		t.Fatal(err)
	}
	if labelOf(t, volume+"/a") != ours || labelOf(t, host) != old || labelOf(t, host+"/file") != old {
		t.Error("what is mounted below the volume was relabelled")
	}
	if err := Relabel("/proc/self/fdinfo", ours); err != nil {
		t.Errorf("a file system without labels: %v", err)
	}
	if err := Relabel("/etc", ours); err == nil {
		t.Error("/etc was relabelled")
	}
	if err := Relabel(volume+"/none", ours); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("nothing there: %v", err)
	}
}

// TestAChangeDuringTheWalk: a folder that has become a link meanwhile leads nowhere.
func TestAChangeDuringTheWalk(t *testing.T) {
	volume, host := files(t)
	folder, err := unix.Open(volume, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(folder)
	for _, path := range []string{"link/file", "../host/file", "gone", "pipe/file"} {
		if err := relabelOne(folder, path, ours); path == "../host/file" && !errors.Is(err, unix.EXDEV) || path != "../host/file" && !changed(err) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if got := labelOf(t, host+"/file"); got != old {
		t.Errorf("the host's file has %q", got)
	}
}
