package trial

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

const (
	// memoryBytes is a limit that every machine can set.
	memoryBytes = 64 << 20
	// firstUser is that of a namespace that is made to try, and how many users it has.
	firstUser = 1 << 16
)

// Dir is where a trial leaves mounts, in the runtime's data directory.
const Dir = "trial"

// Cgroup makes a group as a pod's and a container's, with limits and without the host's devices, and removes it.
func Cgroup(path string) error {
	group, err := cgroup.Open(path)
	if err != nil {
		return err
	}
	err = group.Create(cgroup.Limits{CPUShares: 2, MemoryBytes: memoryBytes})
	if err != nil {
		err = fmt.Errorf("%w (are the cgroups of the machine mounted at /sys/fs/cgroup, writable, with cpu and memory?)", err)
	} else if err = group.AllowDevices(nil); err != nil {
		err = fmt.Errorf("%w (is the devices controller mounted, or with cgroup v2, may this process load BPF programs?)", err)
	}
	_ = group.Destroy() // what could not be made is not there
	group.TrimParents()
	return err
}

// Container starts a process in all the namespaces of a container, which mounts a root file system.
func Container(executable, dataDir string) error { return mounts(executable, dataDir) }

// mounts has a process in namespaces of its own mount what a container needs; args follow the folder's name.
func mounts(executable, dataDir string, args ...string) error {
	dir, err := os.MkdirTemp(dataDir, "preflight-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var said strings.Builder
	command := &exec.Cmd{
		Path: executable, Args: append([]string{shim.PreflightName, dir}, args...), Dir: "/",
		Env: []string{"GOMAXPROCS=1"}, Stderr: &said,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNS | unix.CLONE_NEWPID,
		},
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("start a process in namespaces of its own (does the agent have SYS_ADMIN?): %w", err)
	}
	if err := command.Wait(); err != nil {
		return fmt.Errorf("prepare a container: %s: %w", strings.TrimSpace(said.String()), err)
	}
	return nil
}

// Users does what Container does, for a pod with a user namespace. Where parts of /proc are covered, as in a container of Docker, the
// kernel mounts none for users of a namespace unless it sees another that is whole: then one is left in dataDir.
func Users(executable, dataDir string) error {
	err := users(executable, dataDir)
	if err == nil {
		return nil
	}
	whole := filepath.Join(dataDir, Dir, "proc")
	if mountProc(whole) != nil || users(executable, dataDir) != nil {
		_ = unix.Unmount(whole, unix.MNT_DETACH)
		_ = os.Remove(whole) // neither is there if nothing was mounted
		return err
	}
	return nil
}

func mountProc(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return unix.Mount("proc", dir, "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "")
}

func users(executable, dataDir string) error {
	var said strings.Builder
	holder := &exec.Cmd{
		Path: executable, Args: []string{shim.PreflightName}, Dir: "/", Env: []string{"GOMAXPROCS=1"}, Stderr: &said,
		SysProcAttr: shim.UserNamespaces(&boot.Users{First: firstUser, Length: firstUser}),
	}
	stdin, err := holder.StdinPipe()
	if err != nil {
		return err
	}
	stdout, err := holder.StdoutPipe()
	if err != nil {
		return err
	}
	if err := holder.Start(); err != nil {
		return fmt.Errorf("start a process in a user namespace: %w", err)
	}
	end := sync.OnceFunc(func() {
		stdin.Close()
		_ = holder.Wait() // it has said what there is to say
	})
	defer end()
	if _, err := stdout.Read(make([]byte, 1)); err != nil {
		end()
		return fmt.Errorf("prepare a user namespace: %s: %w", strings.TrimSpace(said.String()), err)
	}
	return mounts(executable, dataDir, strconv.Itoa(holder.Process.Pid))
}
