package boot

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Preflight mounts what every container needs, an overlay and a /proc, below an empty directory. The caller has started
// it in mount and PID namespaces of its own, so that nothing is left of the mounts.
func Preflight(dir string) error {
	if err := unix.Mount("", "/", "", unix.MS_SLAVE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mounts cannot be kept to a container: %w", err)
	}
	spec := &Spec{Rootfs: Rootfs{LowerBase: dir, Lowers: []string{"lower"}, Upper: filepath.Join(dir, "upper"),
		Work: filepath.Join(dir, "work"), Target: filepath.Join(dir, "root")}}
	for _, sub := range []string{"lower/proc", "upper", "work", "root"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return err
		}
	}
	if _, err := mountRoot(spec); err != nil {
		return err
	}
	if err := unix.Mount("proc", filepath.Join(spec.Rootfs.Target, "proc"), "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	return nil
}
