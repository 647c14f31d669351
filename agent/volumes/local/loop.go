package local

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

const (
	loopControl = "/dev/loop-control"
	loopMajor   = 7
	// loopTriesMax bounds how often another process may be faster with a free device.
	loopTriesMax = 32
)

// attach gives the loop device of a file; it makes one if there is none.
func attach(disk string) (string, error) {
	if found, err := loopsOf(disk); err != nil || len(found) > 0 {
		return first(found), err
	}
	f, err := os.OpenFile(disk, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	for range loopTriesMax {
		device, err := configure(f)
		if !errors.Is(err, unix.EBUSY) {
			return device, err
		}
	}
	return "", fmt.Errorf("no free loop device after %d attempts", loopTriesMax)
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// configure takes a free device.
func configure(disk *os.File) (string, error) {
	control, err := os.OpenFile(loopControl, os.O_RDWR, 0)
	if err != nil {
		return "", fmt.Errorf("loop devices: %w", err)
	}
	defer control.Close()
	number, err := unix.IoctlRetInt(int(control.Fd()), unix.LOOP_CTL_GET_FREE)
	if err != nil {
		return "", fmt.Errorf("find a free loop device: %w", err)
	}
	device := fmt.Sprintf("/dev/loop%d", number)
	if err := unix.Mknod(device, unix.S_IFBLK|0o600, int(unix.Mkdev(loopMajor, uint32(number)))); err != nil && !errors.Is(err, unix.EEXIST) {
		return "", fmt.Errorf("make %s: %w", device, err)
	}
	loop, err := os.OpenFile(device, os.O_RDWR, 0)
	if err != nil {
		return "", err
	}
	defer loop.Close()
	config := unix.LoopConfig{Fd: uint32(disk.Fd())}
	copy(config.Info.File_name[:len(config.Info.File_name)-1], disk.Name())
	if err := unix.IoctlLoopConfigure(int(loop.Fd()), &config); err != nil {
		return "", fmt.Errorf("configure %s: %w", device, err)
	}
	return device, nil
}

// detach frees every loop device of a file. One that is still open goes when it is closed.
func detach(disk string) error {
	return eachLoop(disk, func(fd int) error {
		if err := unix.IoctlSetInt(fd, unix.LOOP_CLR_FD, 0); err != nil && !errors.Is(err, unix.ENXIO) {
			return fmt.Errorf("detach a loop device: %w", err)
		}
		return nil
	})
}

// Detach frees the loop devices of all volumes in a folder, which may be gone: for a machine that is no node any more.
func Detach(dir string) error {
	disks, err := filepath.Glob(filepath.Join(dir, "*", diskName))
	for _, disk := range disks {
		err = errors.Join(err, detach(disk))
	}
	return err
}

// resizeLoop makes the loop devices of a file as large as it is.
func resizeLoop(disk string) error {
	return eachLoop(disk, func(fd int) error { return unix.IoctlSetInt(fd, unix.LOOP_SET_CAPACITY, 0) })
}

func eachLoop(disk string, do func(fd int) error) error {
	found, err := loopsOf(disk)
	for _, device := range found {
		loop, openErr := os.OpenFile(device, os.O_RDWR, 0)
		if openErr != nil {
			err = errors.Join(err, openErr)
			continue
		}
		err = errors.Join(err, do(int(loop.Fd())), loop.Close())
	}
	return err
}

// loopsOf asks the kernel which loop devices have the file. It is compared by inode: a path may be seen from another mount
// namespace.
func loopsOf(disk string) ([]string, error) {
	var file unix.Stat_t
	if err := unix.Stat(disk, &file); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, &fs.PathError{Op: "stat", Path: disk, Err: err}
	}
	inUse, err := filepath.Glob("/sys/block/loop*/loop")
	var found []string
	for _, at := range inUse {
		device := filepath.Join("/dev", filepath.Base(filepath.Dir(at)))
		if loopHas(device, file) {
			found = append(found, device)
		}
	}
	return found, err
}

// loopHas: a device that cannot be asked was freed just now.
func loopHas(device string, file unix.Stat_t) bool {
	loop, err := os.Open(device)
	if err != nil {
		return false
	}
	defer loop.Close()
	info, err := unix.IoctlLoopGetStatus64(int(loop.Fd()))
	return err == nil && info.Inode == file.Ino && info.Device == file.Dev
}

// blocksOf is how many blocks a file has on the disk.
func blocksOf(path string) (int64, error) {
	var stat unix.Stat_t
	err := unix.Lstat(path, &stat)
	return stat.Blocks, err
}
