package boot

import (
	"errors"
	"slices"

	"golang.org/x/sys/unix"
)

// What the kernel shows below /proc and /sys is masked and made read-only by path. A pod that could put something else there, or have
// them mounted elsewhere, would have the masks on its own files, and would lead astray whoever trusts what it reads and writes there.

var (
	errLinkedTree = errors.New("the image has a link where the kernel's tree is mounted")
	errFakeProc   = errors.New("a volume over /proc must be a procfs")
	errOverProc   = errors.New("a volume must not cover a part of /proc")
)

// coverable are files below /proc that only describe the machine to whoever reads them; file systems such as lxcfs offer others.
var coverable = []string{
	"/proc/cpuinfo", "/proc/diskstats", "/proc/loadavg", "/proc/meminfo", "/proc/slabinfo", "/proc/stat", "/proc/swaps", "/proc/uptime",
}

// checkKernelTree: procfs and sysfs are mounted on directories of the image itself, and only procfs may be mounted at /proc.
func checkKernelTree(root rootDir, mount Mount, trees map[string]tree) error {
	if mount.Target != "/proc" && mount.Target != "/sys" {
		return nil
	}
	made, err := root.openDir(mount.Target)
	if err != nil {
		return err
	}
	unix.Close(made)
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_DIRECTORY | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_SYMLINKS}
	plain, err := unix.Openat2(int(root), "."+mount.Target, &how)
	if errors.Is(err, unix.ELOOP) {
		return errLinkedTree
	}
	if err != nil {
		return err
	}
	unix.Close(plain)
	if source, ok := trees[mount.Target]; ok && mount.Target == "/proc" && !onProcfs(source.FD) {
		return errFakeProc
	}
	return nil
}

// checkNotProc looks at the target that was found, whichever links led there.
func checkNotProc(target int, name string) error {
	if onProcfs(target) && !slices.Contains(coverable, name) {
		return errOverProc
	}
	return nil
}

func onProcfs(fd int) bool {
	var stat unix.Statfs_t
	return unix.Fstatfs(fd, &stat) == nil && stat.Type == unix.PROC_SUPER_MAGIC
}
