package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// A mount is one of those that a distribution makes when it boots.
type mount struct{ source, target, kind, options string }

var early = []mount{
	{"proc", "/proc", "proc", ""},
	{"sysfs", "/sys", "sysfs", ""},
	{"devtmpfs", "/dev", "devtmpfs", ""},
}

var late = []mount{
	{"devpts", "/dev/pts", "devpts", "mode=620,ptmxmode=666"},
	{"tmpfs", "/dev/shm", "tmpfs", ""},
	{"mqueue", "/dev/mqueue", "mqueue", ""},
	{"securityfs", "/sys/kernel/security", "securityfs", ""},
	{"bpf", "/sys/fs/bpf", "bpf", ""},
	{"tmpfs", "/run", "tmpfs", "mode=755"},
	{"hugetlbfs", "/dev/hugepages", "hugetlbfs", ""},
}

// boot makes of the kernel's first file system, which holds this program and the modules, a machine like any other.
func boot() error {
	steps := []func() error{
		func() error { return mountAll(early) },
		loadModules,
		enterDisk,
		func() error { return mountAll(late) },
		enforcePolicy,
		func() error { return mountGroups(commandLine("vm.cgroup")) },
		useSwap,
		loopbackUp,
		func() error { return unix.Sethostname([]byte("vm")) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}

func mountAll(mounts []mount) error {
	for _, m := range mounts {
		if err := os.MkdirAll(m.target, 0o755); err != nil {
			return err
		}
		if err := unix.Mount(m.source, m.target, m.kind, unix.MS_NOSUID, m.options); err != nil && err != unix.EBUSY {
			return fmt.Errorf("mount %s on %s: %w", m.kind, m.target, err)
		}
	}
	return nil
}

// loadModules loads what package pack has put into /modules, in the order of the names.
func loadModules() error {
	files, err := filepath.Glob("/modules/*")
	if err != nil {
		return err
	}
	slices.Sort(files)
	for _, name := range files {
		if err := loadModule(name); err != nil {
			return fmt.Errorf("load %s: %w", filepath.Base(name), err)
		}
	}
	return nil
}

func loadModule(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	return unix.FinitModule(int(file.Fd()), "", 0)
}

// enterDisk makes the disk the root. The kernel's first file system cannot be left with pivot_root(2), so the disk is
// moved over it.
func enterDisk() error {
	if err := unix.Mount("/dev/vda", "/disk", "ext4", 0, "prjquota"); err != nil {
		return fmt.Errorf("mount the disk: %w", err)
	}
	for _, m := range early {
		if err := unix.Mount(m.target, "/disk"+m.target, "", unix.MS_MOVE, ""); err != nil {
			return fmt.Errorf("move %s: %w", m.target, err)
		}
	}
	if err := os.Chdir("/disk"); err != nil {
		return err
	}
	if err := unix.Mount(".", "/", "", unix.MS_MOVE, ""); err != nil {
		return fmt.Errorf("move the disk: %w", err)
	}
	if err := unix.Chroot("."); err != nil {
		return err
	}
	// As systemd does: what is mounted in one namespace is seen in those that were made from it.
	if err := unix.Mount("", "/", "", unix.MS_SHARED|unix.MS_REC, ""); err != nil {
		return err
	}
	return os.Chdir("/")
}

// useSwap turns the second disk into swap, if there is one.
func useSwap() error {
	const disk = "/dev/vdb"
	if _, err := os.Stat(disk); err != nil {
		return nil
	}
	name, err := unix.BytePtrFromString(disk)
	if err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SWAPON, uintptr(unsafe.Pointer(name)), 0, 0); errno != 0 {
		return fmt.Errorf("swapon: %w", errno)
	}
	return nil
}

func loopbackUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

// commandLine returns the value of an argument of the kernel.
func commandLine(name string) string {
	line, _ := os.ReadFile("/proc/cmdline")
	for field := range strings.FieldsSeq(string(line)) {
		if value, ok := strings.CutPrefix(field, name+"="); ok {
			return value
		}
	}
	return ""
}
