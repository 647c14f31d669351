package mutants

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Without one of its walls a pod does to its node what the page tries. The cage is a node that may lose: a process with namespaces and
// a cgroup of its own, to which every file system is read-only but a few in memory, and whose /dev has nodes of its own. What is left
// are parameters of the kernel itself, which a new procfs has always writable: settings.go sets them back.

// cageEnv is, for the process that enters the cage, the namespaces of the process that started it.
const cageEnv = "SETPOINT_TEST_CAGE"

// cageNamespaces are made with the process; a cgroup namespace follows when it is in its cgroup.
const cageNamespaces = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS

// inMemory are where file systems in memory lie over those of the host.
var inMemory = []string{"/tmp", "/var/tmp", "/run", "/var/log", "/var/lib"}

// Where the cage has what it was given.
const (
	cageTools = "/tmp/tools"
	cagePages = "/tmp/escape/testdata"
)

// request is what a process is told that enters the cage, as its arguments.
type request struct {
	tools, pages string   // folders of the host
	groups       []string // folders of its cgroup
	command      []string // what it then becomes
}

func (r *request) arguments() []string {
	return append([]string{r.tools, r.pages, strings.Join(r.groups, ":")}, r.command...)
}

// EnterCage closes the cage around this process, which has namespaces of its own already, and becomes the command. It
// returns only why it does not.
func EnterCage(arguments []string) error {
	if len(arguments) < 4 {
		return errors.New("usage: TOOLS PAGES GROUP:... COMMAND [ARGS]")
	}
	r := request{tools: arguments[0], pages: arguments[1], groups: strings.Split(arguments[2], ":"), command: arguments[3:]}
	runtime.LockOSThread() // its cgroup namespace is this thread's, and execve keeps it
	steps := []func() error{r.joinGroups, r.closeFiles, mountKernel, mountDevices, mountGroups, checkCage, loopbackUp}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	if err := errors.Join(os.Chdir(filepath.Dir(cagePages)), os.Unsetenv(cageEnv)); err != nil {
		return err
	}
	return &os.PathError{Op: "exec", Path: r.command[0], Err: syscall.Exec(r.command[0], r.command, os.Environ())}
}

func (r *request) joinGroups() error {
	for _, dir := range r.groups {
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte("0"), 0); err != nil {
			return err
		}
	}
	return os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWCGROUP))
}

// closeFiles leaves nothing writable but memory. What the trial needs of the host is copied there.
func (r *request) closeFiles() error {
	if err := mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return err
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &attr); err != nil {
		return fmt.Errorf("make / read-only: %w", err)
	}
	given := map[string]*os.Root{}
	for target, source := range map[string]string{cageTools: r.tools, cagePages: r.pages} {
		root, err := os.OpenRoot(source) // before something lies over it
		if err != nil {
			return err
		}
		defer root.Close()
		given[target] = root
	}
	for _, dir := range inMemory {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := mount("tmpfs", dir, "tmpfs", 0, "mode=1777"); err != nil {
			return err
		}
	}
	for target, root := range given {
		if err := os.CopyFS(target, root.FS()); err != nil {
			return err
		}
	}
	return nil
}

// mountKernel shows the new namespaces, not the host's.
func mountKernel() error {
	const flags = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV
	return errors.Join(mount("proc", "/proc", "proc", flags, ""), mount("sysfs", "/sys", "sysfs", flags|unix.MS_RDONLY, ""))
}

// cageDevices are nodes of the cage's own: those that every container has, and two that pages try to open.
var cageDevices = []struct {
	name         string
	kind         uint32
	major, minor uint32
}{
	{"null", unix.S_IFCHR, 1, 3}, {"zero", unix.S_IFCHR, 1, 5}, {"full", unix.S_IFCHR, 1, 7}, {"random", unix.S_IFCHR, 1, 8},
	{"urandom", unix.S_IFCHR, 1, 9}, {"kmsg", unix.S_IFCHR, 1, 11}, {"tty", unix.S_IFCHR, 5, 0}, {"loop0", unix.S_IFBLK, 7, 0},
}

func mountDevices() error {
	if err := mount("tmpfs", "/dev", "tmpfs", unix.MS_NOSUID, "mode=755"); err != nil {
		return err
	}
	unix.Umask(0)
	defer unix.Umask(0o022)
	for _, d := range cageDevices {
		if err := unix.Mknod("/dev/"+d.name, d.kind|0o666, int(unix.Mkdev(d.major, d.minor))); err != nil {
			return fmt.Errorf("make /dev/%s: %w", d.name, err)
		}
	}
	for _, dir := range []string{"/dev/pts", "/dev/shm"} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.Symlink("pts/ptmx", "/dev/ptmx"), os.Symlink("/proc/self/fd", "/dev/fd"),
		mount("devpts", "/dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620"),
		mount("tmpfs", "/dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"),
	)
}

// loopbackUp is what a machine has.
func loopbackUp() error {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	return netlink.LinkSetUp(loopback)
}

func mount(source, target, kind string, flags uintptr, data string) error {
	if err := unix.Mount(source, target, kind, flags, data); err != nil {
		return fmt.Errorf("mount %s: %w", target, err)
	}
	return nil
}
