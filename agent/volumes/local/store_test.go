package local

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/internal/localvolume"
)

const handle = "pvc-6f9619ff-8b86-d011-b42d-00c04fc964ff"

func open(t *testing.T) *Store {
	t.Helper()
	s, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func makeTwice(t *testing.T, s *Store, want localvolume.Volume) {
	t.Helper()
	for range 2 { // the second time changes nothing
		if _, err := s.Make(handle, want); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHostileRequestsAreRefused(t *testing.T) {
	s := open(t)
	for name, c := range map[string]struct {
		handle string
		want   localvolume.Volume
		err    error
	}{
		"outside":         {"pvc-../../etc", localvolume.Volume{Bytes: 1}, ErrHandle},
		"hidden":          {".removing-pvc-a", localvolume.Volume{Bytes: 1}, ErrHandle},
		"empty":           {"", localvolume.Volume{Bytes: 1}, ErrHandle},
		"upper case":      {"pvc-A", localvolume.Volume{Bytes: 1}, ErrHandle},
		"a line more":     {handle + "\n", localvolume.Volume{Bytes: 1}, ErrHandle},
		"no size":         {handle, localvolume.Volume{}, ErrSize},
		"negative size":   {handle, localvolume.Volume{Bytes: -1}, ErrSize},
		"too large":       {handle, localvolume.Volume{Bytes: localvolume.BytesMax + 1}, ErrSize},
		"longer than 255": {"pvc-" + string(make([]byte, 300)), localvolume.Volume{Bytes: 1}, ErrHandle},
	} {
		if _, err := s.Make(c.handle, c.want); !errors.Is(err, c.err) {
			t.Errorf("%s: %v", name, err)
		}
		if !errors.Is(c.err, ErrHandle) {
			continue
		}
		_, folderErr := s.Folder(c.handle)
		_, useErr := s.Use(c.handle, nil)
		for _, err := range []error{folderErr, useErr, s.Remove(c.handle, false), s.Release(c.handle, nil)} {
			if !errors.Is(err, ErrHandle) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	if list, err := s.List(); len(list) > 0 || err != nil {
		t.Errorf("%v, %v", list, err)
	}
}

func TestAVolumeLives(t *testing.T) {
	s := open(t)
	if _, err := s.Folder(handle); err == nil {
		t.Error("a volume that was not made is there")
	}
	makeTwice(t, s, localvolume.Volume{Bytes: 1 << 20})
	if _, err := s.Make(handle, localvolume.Volume{Bytes: 1 << 20, Block: true}); !errors.Is(err, ErrMode) {
		t.Errorf("as a block device: %v", err)
	}
	folder, err := s.Folder(handle)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(folder); err != nil || info.Mode().Perm() != 0o777 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.WriteFile(filepath.Join(folder, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(handle, true); err != nil {
		t.Fatal(err)
	}
	if list, err := s.List(); !slices.Equal(list, []string{handle}) || err != nil {
		t.Errorf("what has data was swept: %v, %v", list, err)
	}
	for range 2 {
		if err := s.Remove(handle, false); err != nil {
			t.Fatal(err)
		}
	}
	nothingIn(t, s.dir)
}

func nothingIn(t *testing.T, dir string) {
	t.Helper()
	if entries, err := os.ReadDir(dir); len(entries) > 0 || err != nil {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestEmptyVolumesAreSwept(t *testing.T) {
	for _, block := range []bool{false, true} {
		s := open(t)
		makeTwice(t, s, localvolume.Volume{Bytes: 1 << 20, Block: block})
		if err := s.Remove(handle, true); err != nil {
			t.Fatal(err)
		}
		nothingIn(t, s.dir)
	}
}

// TestACrashLeavesNothing: every state between two steps, as an agent that was killed leaves it.
func TestACrashLeavesNothing(t *testing.T) {
	for name, files := range map[string][]string{
		"before the data": {making + handle},
		"before a rename": {making + handle + "/" + dataName},
		"of the deletion": {removing + handle + "/" + dataName + "/deep/file"},
		"a removal twice": {removing + handle + "/x", making + handle + "/y"},
	} {
		dir := t.TempDir()
		for _, f := range files {
			if err := os.MkdirAll(filepath.Join(dir, f), 0o700); err != nil {
				t.Fatal(err)
			}
		}
		s, err := Open(dir)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		nothingIn(t, dir)
		makeTwice(t, s, localvolume.Volume{Bytes: 1})
	}
}

func TestBlockDevices(t *testing.T) {
	needRoot(t)
	s := open(t)
	makeTwice(t, s, localvolume.Volume{Bytes: 1 << 20, Block: true})
	noted := 0
	note := func() error { noted++; return nil }
	device, err := s.Use(handle, note)
	if err != nil {
		t.Fatal(err)
	}
	disk := filepath.Join(s.dir, handle, diskName)
	t.Cleanup(func() { _ = detach(disk) })
	restarted, err := Open(s.dir)
	if err != nil {
		t.Fatal(err)
	}
	again, err := restarted.Use(handle, note)
	if again != device || err != nil || noted != 2 {
		t.Errorf("%s and %s, %v, noted %d times", device, again, err, noted)
	}
	if _, err := restarted.Make(handle, localvolume.Volume{Bytes: 3 << 20, Block: true}); err != nil {
		t.Fatal(err)
	}
	if size := sizeOf(t, device); size != 3<<20 {
		t.Errorf("%d bytes", size)
	}
	if err := s.Release(handle, func() (bool, error) { return true, nil }); err != nil || len(must(loopsOf(disk))(t)) != 1 {
		t.Errorf("taken from the other user: %v", err)
	}
	if err := s.Release(handle, func() (bool, error) { return false, nil }); err != nil || len(must(loopsOf(disk))(t)) != 0 {
		t.Errorf("not released: %v", err)
	}
	if _, err := s.Use(handle, func() error { return os.ErrPermission }); !errors.Is(err, os.ErrPermission) || len(must(loopsOf(disk))(t)) != 0 {
		t.Errorf("used without a note: %v", err)
	}
	if _, err := s.Use(handle, note); err != nil {
		t.Fatal(err)
	}
	if err := s.Remove(handle, false); err != nil || len(must(loopsOf(disk))(t)) != 0 {
		t.Errorf("removed with its device: %v", err)
	}
	nothingIn(t, s.dir)
}

func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("loop devices and mounts need root")
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func sizeOf(t *testing.T, device string) int64 {
	t.Helper()
	f := must(os.Open(device))(t)
	defer f.Close()
	return must(f.Seek(0, 2))(t)
}

// TestQuotas mounts a file system that has them, if the kernel knows them; if not, that is told.
func TestQuotas(t *testing.T) {
	needRoot(t)
	dir, known := quotaFolder(t)
	s := must(Open(dir))(t)
	if !known {
		if made, err := s.Make(handle, localvolume.Volume{Bytes: 1 << 20}); made.Enforced || err != nil {
			t.Errorf("%+v, %v", made, err)
		}
		return
	}
	made := must(s.Make(handle, localvolume.Volume{Bytes: 1 << 20}))(t)
	other := must(s.Make(handle+"-b", localvolume.Volume{Bytes: 1 << 20}))(t)
	if !made.Enforced || !other.Enforced {
		t.Fatal("not enforced")
	}
	fill := func(h string, bytes int) error {
		file := filepath.Join(must(s.Folder(h))(t), "f")
		return withoutTheRightToExceed(func() error { return os.WriteFile(file, make([]byte, bytes), 0o600) })
	}
	if err := fill(handle, 2<<20); !errors.Is(err, unix.ENOSPC) && !errors.Is(err, unix.EDQUOT) {
		t.Errorf("more than its size: %v", err)
	}
	if err := fill(handle+"-b", 900<<10); err != nil {
		t.Errorf("the other one: %v", err)
	}
	must(s.Make(handle, localvolume.Volume{Bytes: 4 << 20}))(t)
	if err := fill(handle, 2<<20); err != nil {
		t.Errorf("after it grew: %v", err)
	}
}

// withoutTheRightToExceed runs do as a container does: the kernel holds nobody to a quota who has CAP_SYS_RESOURCE.
func withoutTheRightToExceed(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // capabilities are the thread's, which ends with this goroutine
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var sets [2]unix.CapUserData
		err := unix.Capget(&header, &sets[0])
		sets[0].Effective &^= 1 << unix.CAP_SYS_RESOURCE
		if err == nil {
			err = unix.Capset(&header, &sets[0])
		}
		if err == nil {
			err = do()
		}
		done <- err
	}()
	return <-done
}

func quotaFolder(t *testing.T) (dir string, known bool) {
	t.Helper()
	image, at := filepath.Join(t.TempDir(), "image"), t.TempDir()
	if err := errors.Join(os.WriteFile(image, nil, 0o600), os.Truncate(image, 64<<20)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-O", "quota,project", image).CombinedOutput(); err != nil {
		t.Fatalf("mkfs.ext4: %v: %s", err, out)
	}
	device := must(attach(image))(t)
	t.Cleanup(func() { _ = detach(image) })
	if err := unix.Mount(device, at, "ext4", 0, "prjquota"); err != nil {
		t.Logf("a kernel without project quotas: %v", err)
		return at, false
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return at, true
}
