package boot

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Preflight mounts what every container needs, an overlay and a /proc, below an empty directory. The caller has started
// it in mount and PID namespaces of its own, so that nothing is left of the mounts.
func Preflight(dir string) error {
	spec, err := preflightRoot(dir, nil)
	if err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(spec.Rootfs.Target, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}

// preflightRoot mounts an overlay below dir, its layers seen by users if there are any.
func preflightRoot(dir string, users *Users) (*Spec, error) {
	if err := detachMounts(); err != nil {
		return nil, err
	}
	spec := &Spec{Users: users, Rootfs: Rootfs{LowerBase: filepath.Join(dir, "layers"), Lowers: []string{"lower"},
		Upper: filepath.Join(dir, "upper"), Work: filepath.Join(dir, "work"), Target: filepath.Join(dir, "root")}}
	for _, sub := range []string{"layers/lower/proc", "upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	if users != nil {
		if err := mapLayers(spec); err != nil {
			return nil, err
		}
	}
	_, err := mountRoot(spec)
	return spec, err
}

// PreflightUsers does the same for the users of the user namespace of the process holder, which runs PreflightHolder; and it mounts a
// tmpfs as they see it, in which volumes are.
func PreflightUsers(dir string, holder int) error {
	users := &Users{Holder: holder}
	if _, err := preflightRoot(dir, users); err != nil {
		return err
	}
	memory, err := newMount("tmpfs", 0, nil)
	if err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	if err := mapIDs(memory, users); err != nil {
		return fmt.Errorf("mount a tmpfs: %w", err)
	}
	return nil
}

// PreflightHolder is a process in a user namespace of its own with all that belongs to it. It does there what a pod's pause process
// does, says so on its standard output, and ends with its standard input.
func PreflightHolder() error {
	runtime.LockOSThread()
	if err := enterEmptyRoot(&PauseSpec{}); err != nil {
		return err
	}
	if _, err := fmt.Println("ready"); err != nil {
		return err
	}
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}
