package boot

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Users are those of a pod with a user namespace of its own.
type Users struct {
	// Holder is the process (the host's number) whose user namespace it is.
	Holder int
	// First is the host's number of the user 0 and of the group 0; Length is how many there are of each.
	First, Length uint32
}

// insideStage is the argument of a process that is in its pod's user namespace.
const insideStage = "inside"

// errNoIDMap explains what users meet on file systems and kernels without idmapped mounts.
var errNoIDMap = errors.New("its file system cannot be mounted with the users of a user namespace (hostUsers: false)")

// A container with a user namespace is booted in two stages. The first one is the host's: it opens what lies on the host, in mounts
// that show the host's user 0 as the container's. The second one is inside: it has no right that its container could not have,
// and does the rest with what the first one opened.

// stage is what the first stage hands over: descriptors and all.
type stage struct {
	Spec  *Spec
	Root  int
	Trees map[string]tree
	// Alive is closed when this stage needs the first one no more.
	Alive int
}

// runInUsers is the first stage. It ends when the second one needs it no more: until the shim takes note of that one, it is
// this process that the shim believes to be the container.
func runInUsers(spec *Spec) error {
	s := &stage{Spec: spec}
	if err := s.open(); err != nil {
		return err
	}
	giveStreams(spec.Users)
	var alive [2]int
	if err := unix.Pipe2(alive[:], unix.O_CLOEXEC); err != nil {
		return err
	}
	s.Alive = alive[1]
	handed, err := handOver(s, s.descriptors()...)
	if err != nil {
		return err
	}
	var namespaces uintptr = unix.CLONE_NEWNS
	if spec.NewPID {
		namespaces |= unix.CLONE_NEWPID
	}
	if _, err := enterUsers(spec.Users.Holder, os.Args[0], handed, namespaces); err != nil {
		return err
	}
	unix.Close(s.Alive)
	for {
		if _, err := unix.Read(alive[0], make([]byte, 1)); !errors.Is(err, unix.EINTR) {
			os.Exit(0)
		}
	}
}

// open opens everything of the host's.
func (s *stage) open() (err error) {
	if s.Trees, err = openSources(s.Spec); err != nil {
		return err
	}
	if err := detachMounts(); err != nil {
		return err
	}
	if err := mapLayers(s.Spec); err != nil {
		return err
	}
	if err := openImages(s.Spec, s.Trees); err != nil {
		return err
	}
	if err := openSysfs(s.Spec, s.Trees); err != nil {
		return err
	}
	if err := openQueues(s.Spec, s.Trees); err != nil {
		return err
	}
	root, err := mountRoot(s.Spec)
	if err != nil {
		return err
	}
	s.Root, err = unix.OpenTree(int(root), "", unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_EMPTY_PATH)
	return os.NewSyscallError("open_tree", err)
}

func (s *stage) descriptors() []int {
	list := []int{s.Root, s.Alive}
	for _, tree := range s.Trees {
		list = append(list, tree.FD)
	}
	return list
}

// handOver writes spec for a process that will be started, and lets it have the descriptors.
func handOver(spec any, descriptors ...int) (handed int, err error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return 0, err
	}
	handed, err = unix.MemfdCreate("spec", 0)
	if err != nil {
		return 0, err
	}
	if _, err := unix.Pwrite(handed, text, 0); err != nil {
		return 0, err
	}
	for _, fd := range descriptors {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return 0, err
		}
	}
	return handed, nil
}

// readHanded reads it in that process.
func readHanded(spec any) error {
	fd, err := strconv.Atoi(os.Args[len(os.Args)-1])
	if err != nil {
		return fmt.Errorf("read spec: %w", err)
	}
	return decodeSpec(fd, spec)
}

// runInside is the second stage.
func runInside() error {
	var s stage
	if err := readHanded(&s); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("death signal: %w", err)
	}
	if err := confine(&s.Spec.Process); err != nil {
		return err
	}
	target, err := openNamespace(s.Spec.SharedPID)
	if err != nil {
		return err
	}
	if target < 0 {
		if err := takeOver(); err != nil {
			return err
		}
		unix.Close(s.Alive)
	}
	if err := s.enterRoot(target); err != nil {
		return err
	}
	return becomeMain(target, &s.Spec.Process)
}

// takeOver makes this process the container in the shim's eyes.
func takeOver() error {
	pid, err := ownPID()
	if err != nil {
		return err
	}
	if err := send(Report{Forked: pid}); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if n, err := unix.Read(ReportFD, make([]byte, 1)); n != 1 {
		return fmt.Errorf("nobody took note of this process: %w", err)
	}
	return nil
}

func (s *stage) enterRoot(target int) error {
	if err := newCgroupNamespace(s.Spec.Cgroup); err != nil {
		return err
	}
	if err := openProcOf(s.Spec, target, s.Trees); err != nil {
		return err
	}
	if err := attachRoot(s.Root); err != nil {
		return err
	}
	return fillRoot(rootDir(s.Root), s.Spec, s.Trees)
}

// attachRoot stacks a detached tree on the root directory, which goes on being seen below it.
func attachRoot(tree int) error {
	if err := unix.MoveMount(tree, "", unix.AT_FDCWD, "/", unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("mount root file system: %w", err)
	}
	return nil
}

// giveStreams lets user 0 of the namespace own what user 0 of the host made: it will hand the streams on.
func giveStreams(users *Users) { own(Identity{UID: users.First, GID: users.First}) }

// mapIDs makes a detached tree show user 0 of the host's files as user 0 of the namespace.
func mapIDs(tree int, users *Users) error {
	namespace, err := unix.Open(fmt.Sprintf("/proc/%d/ns/user", users.Holder), unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(namespace)
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_IDMAP, Userns_fd: uint64(namespace)}
	err = unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr)
	if errors.Is(err, unix.EINVAL) {
		return fmt.Errorf("%w (%w)", errNoIDMap, err)
	}
	return err
}

// mapLayers covers the folder of all layers with itself, seen by the pod's users. The overlay's own upper folder needs no such
// view: what is written there belongs to the host's numbers.
func mapLayers(spec *Spec) error {
	layers, err := openTree(spec.Rootfs.LowerBase)
	if err != nil {
		return fmt.Errorf("image layers: %w", err)
	}
	defer unix.Close(layers.FD)
	if err := mapIDs(layers.FD, spec.Users); err != nil {
		return fmt.Errorf("image layers: %w", err)
	}
	if err := unix.MoveMount(layers.FD, "", unix.AT_FDCWD, spec.Rootfs.LowerBase, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
		return fmt.Errorf("image layers: %w", err)
	}
	return os.Chown(spec.Rootfs.Upper, int(spec.Users.First), int(spec.Users.First))
}

// openSysfs mounts it from outside: inside, the kernel refuses to, unless all of the host's is visible there.
func openSysfs(spec *Spec, trees map[string]tree) error {
	for _, mount := range spec.Mounts {
		if mount.Type != "sysfs" {
			continue
		}
		attributes := 0
		if mount.Flags&unix.MS_RDONLY != 0 {
			attributes = unix.MOUNT_ATTR_RDONLY
		}
		fd, err := newMount("sysfs", attributes, nil)
		if err != nil {
			return fmt.Errorf("sysfs: %w", err)
		}
		trees[mount.Target] = tree{FD: fd, IsDir: true}
	}
	return nil
}

// newMount makes a detached mount without devices and programs; attributes say what else it is.
func newMount(kind string, attributes int, options map[string]string) (int, error) {
	context, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return 0, err
	}
	defer unix.Close(context)
	for key, value := range options {
		if err := unix.FsconfigSetString(context, key, value); err != nil {
			return 0, fmt.Errorf("option %s: %w", key, err)
		}
	}
	if err := unix.FsconfigCreate(context); err != nil {
		return 0, err
	}
	return unix.Fsmount(context, unix.FSMOUNT_CLOEXEC, attributes|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOEXEC)
}
