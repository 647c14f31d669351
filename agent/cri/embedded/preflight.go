package embedded

import (
	"fmt"
	"os"
	"os/exec"
	"path"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/cri/embedded/shim"
)

// preflightInterval is how often a machine that cannot run containers is tried again.
const preflightInterval = 10 * time.Second

// preflightMemoryBytes is a limit that every machine can set.
const preflightMemoryBytes = 64 << 20

// preflight is what a machine must be able to do before a pod is sent to it: cgroups with limits and devices, namespaces,
// mounts.
// Once it was, it is not asked again.
type preflight struct {
	mu      sync.Mutex
	checked time.Time
	err     error
}

// check returns why no container can run here, nil if one can.
func (p *preflight) check(r *Runtime) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.checked.IsZero() || p.err != nil && time.Since(p.checked) >= preflightInterval {
		if p.err = r.tryCgroup(); p.err == nil {
			p.err = r.tryContainer()
		}
		p.checked = time.Now()
	}
	return p.err
}

// tryCgroup makes a group as a pod's and a container's, with limits and without the host's devices.
func (r *Runtime) tryCgroup() error {
	r.cgroupPaths.Lock()
	defer r.cgroupPaths.Unlock()
	group, err := cgroup.Open(path.Join(r.cgroupRoot(), "preflight"))
	if err != nil {
		return err
	}
	err = group.Create(cgroup.Limits{CPUShares: 2, MemoryBytes: preflightMemoryBytes})
	if err != nil {
		err = fmt.Errorf("%w (are the cgroups of the machine mounted at /sys/fs/cgroup, writable, with cpu and memory?)", err)
	} else if err = group.AllowDevices(nil); err != nil {
		err = fmt.Errorf("%w (is the devices controller mounted, or with cgroup v2, may this process load BPF programs?)", err)
	}
	_ = group.Destroy() // what could not be made is not there
	group.TrimParents(1)
	return err
}

// tryContainer starts a process in all the namespaces of a container, which mounts a root file system.
func (r *Runtime) tryContainer() error {
	dir, err := os.MkdirTemp(r.config.DataDir, "preflight-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var said strings.Builder
	command := &exec.Cmd{
		Path: r.executable.path, Args: []string{shim.PreflightName, dir}, Dir: "/", Env: []string{"GOMAXPROCS=1"}, Stderr: &said,
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
