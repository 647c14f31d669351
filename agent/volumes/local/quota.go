package local

import (
	"errors"
	"os"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What <linux/fs.h> and <linux/quota.h> call so; x/sys lacks them.
const (
	fsIocGetXattr   = 0x801c581f
	fsIocSetXattr   = 0x401c5820
	projectInherit  = 0x200 // FS_XFLAG_PROJINHERIT: what is made below has the project too
	projectQuota    = 2     // PRJQUOTA
	getFormat       = 0x800004
	setQuota        = 0x800008
	onlyBlockLimits = 1 // QIF_BLIMITS
	blockSize       = 1024

	// projectFirst begins our numbers: low ones are what administrators give by hand.
	projectFirst = 1 << 24
)

// fsxattr is struct fsxattr.
type fsxattr struct {
	flags, extentSize, extents, project, cowExtentSize uint32
	_                                                  [8]byte
}

// dqblk is struct if_dqblk.
type dqblk struct {
	hardBlocks, softBlocks, space  uint64
	hardInodes, softInodes, inodes uint64
	timeOfSpace, timeOfInodes      uint64
	valid                          uint32
	_                              uint32
}

// limit lets no more than so many bytes be written below folder. It fails where the file system has no project quotas.
func limit(store, folder string, bytes int64) error {
	f, err := os.Open(folder)
	if err != nil {
		return err
	}
	defer f.Close()
	var format uint32
	if err := quotactl(f, getFormat, 0, unsafe.Pointer(&format)); err != nil {
		return err // no project quotas here
	}
	project, err := projectOf(f)
	if err != nil {
		return err
	}
	if project == 0 {
		if project, err = freeProject(store); err != nil {
			return err
		}
		if err := setProject(f, project); err != nil {
			return err
		}
	}
	q := dqblk{hardBlocks: uint64(bytes+blockSize-1) / blockSize, valid: onlyBlockLimits}
	q.softBlocks = q.hardBlocks
	return quotactl(f, setQuota, project, unsafe.Pointer(&q))
}

// quotactl needs Linux 5.14; before, there are no quotas for us.
func quotactl(f *os.File, command uintptr, project uint32, in unsafe.Pointer) error {
	_, _, errno := unix.Syscall6(unix.SYS_QUOTACTL_FD, f.Fd(), command<<8|projectQuota, uintptr(project), uintptr(in), 0, 0)
	if errno != 0 {
		return os.NewSyscallError("quotactl_fd", errno)
	}
	return nil
}

func projectOf(f *os.File) (uint32, error) {
	var x fsxattr
	err := xattr(f, fsIocGetXattr, &x)
	return x.project, err
}

func setProject(f *os.File, project uint32) error {
	var x fsxattr
	if err := xattr(f, fsIocGetXattr, &x); err != nil {
		return err
	}
	x.project, x.flags = project, x.flags|projectInherit
	return xattr(f, fsIocSetXattr, &x)
}

func xattr(f *os.File, request uintptr, x *fsxattr) error {
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, f.Fd(), request, uintptr(unsafe.Pointer(x)))
	if errno != 0 {
		return os.NewSyscallError("ioctl fsxattr", errno)
	}
	return nil
}

// freeProject is a number above those of all volumes, those on their way out included.
func freeProject(store string) (uint32, error) {
	folders, err := filepath.Glob(filepath.Join(store, "*", dataName))
	hidden, hiddenErr := filepath.Glob(filepath.Join(store, ".*", dataName))
	highest := uint32(projectFirst - 1)
	for _, folder := range append(folders, hidden...) {
		f, err := os.Open(folder)
		if err != nil {
			continue // it went just now
		}
		if project, err := projectOf(f); err == nil {
			highest = max(highest, project)
		}
		f.Close()
	}
	return highest + 1, errors.Join(err, hiddenErr)
}
