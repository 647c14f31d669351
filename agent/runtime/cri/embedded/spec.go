package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/boot"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/capabilities"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/seccomp"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/selinux"
)

// ErrNoCommand says that neither the pod nor the image names a command.
var ErrNoCommand = errors.New("no command specified")

// processOf joins the image's config with the pod's wishes; the pod wins.
func (r *Runtime) processOf(s *sandbox, config *runtimeapi.ContainerConfig, image images.Image) (*boot.Process, error) {
	args := commandOf(config, image)
	if len(args) == 0 {
		return nil, fmt.Errorf("%w: image %s has neither entrypoint nor command", ErrNoCommand, image.ID)
	}
	security := config.GetLinux().GetSecurityContext()
	bounding, err := capabilities.Of(security)
	if err != nil {
		return nil, err
	}
	filter, err := seccomp.For(security, capabilities.Names(bounding))
	if err != nil {
		return nil, err
	}
	profile, err := r.apparmor.ProfileOf(security)
	if err != nil {
		return nil, err
	}
	cwd := config.GetWorkingDir()
	if cwd == "" {
		cwd = image.Config.WorkingDir
	}
	return &boot.Process{
		Args: args, Env: environment(s, config, image), Cwd: cwd, User: userOf(s, security, image), Bounding: bounding,
		NoNewPrivs: security.GetNoNewPrivs(), Seccomp: filter, AppArmor: profile, Tty: config.GetTty(),
	}, nil
}

// commandOf follows the table in the Kubernetes documentation: a command replaces the image's command and arguments.
func commandOf(config *runtimeapi.ContainerConfig, image images.Image) []string {
	command, args := config.GetCommand(), config.GetArgs()
	if len(command) == 0 {
		command = image.Config.Entrypoint
		if len(args) == 0 {
			args = image.Config.Cmd
		}
	}
	return slices.Concat(command, args)
}

func environment(s *sandbox, config *runtimeapi.ContainerConfig, image images.Image) []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOSTNAME=" + s.hostname()}
	if config.GetTty() {
		env = append(env, "TERM=xterm")
	}
	env = append(env, image.Config.Env...)
	for _, pair := range config.GetEnvs() {
		env = append(env, pair.Key+"="+string(pair.Value))
	}
	return lastWins(env)
}

// lastWins keeps the last value of each name at the place of its first.
func lastWins(env []string) []string {
	places := map[string]int{}
	var kept []string
	for _, pair := range env {
		name, _, _ := strings.Cut(pair, "=")
		if place, ok := places[name]; ok {
			kept[place] = pair
			continue
		}
		places[name] = len(kept)
		kept = append(kept, pair)
	}
	return kept
}

func userOf(s *sandbox, security *runtimeapi.LinuxContainerSecurityContext, image images.Image) boot.User {
	user := boot.User{
		Name:   image.Config.User,
		Groups: security.GetSupplementalGroups(),
		Strict: security.GetSupplementalGroupsPolicy() == runtimeapi.SupplementalGroupsPolicy_Strict,
	}
	if name := security.GetRunAsUsername(); name != "" {
		user.Name = name
	}
	if uid := security.GetRunAsUser(); uid != nil {
		user.UID = &uid.Value
	}
	if gid := security.GetRunAsGroup(); gid != nil {
		user.GID = &gid.Value
	}
	return user
}

// specOf is what the container's first stage needs.
func (r *Runtime) specOf(c *container) (*boot.Spec, error) {
	security := c.config.GetLinux().GetSecurityContext()
	mounts, err := mountsOf(c)
	if err != nil {
		return nil, err
	}
	layers := slices.Clone(c.record.Layers)
	slices.Reverse(layers)
	spec := &boot.Spec{
		ID: c.id,
		Rootfs: boot.Rootfs{
			LowerBase: r.images.LayersDir(), Lowers: layers, Upper: filepath.Join(c.dir, "upper"),
			Work: filepath.Join(c.dir, "work"), Target: filepath.Join(c.dir, "rootfs"), Readonly: security.GetReadonlyRootfs(),
		},
		Mounts:      mounts,
		Privileged:  security.GetPrivileged(),
		Cgroup:      cgroupSpec(c.group),
		OOMScoreAdj: int(c.limits().GetOomScoreAdj()),
		Label:       c.record.FileLabel,
		Users:       c.sandbox.users(),
		Process:     c.record.Process,
	}
	for _, device := range c.config.GetDevices() {
		spec.Devices = append(spec.Devices, boot.Device{HostPath: device.HostPath, ContainerPath: device.ContainerPath})
	}
	if !security.GetPrivileged() {
		spec.MaskedPaths, spec.ReadonlyPaths = hiddenPaths(security)
	}
	return spec, nil
}

func cgroupSpec(group *cgroup.Group) boot.Cgroup {
	v1 := slices.DeleteFunc(group.Dirs(), func(dir string) bool { return dir == group.Unified() })
	return boot.Cgroup{Dirs: v1, Unified: group.Unified(), Mounts: group.Mounts(), V2: cgroup.V2()}
}

// hiddenPaths takes the agent's lists; without any, what every runtime hides.
func hiddenPaths(security *runtimeapi.LinuxContainerSecurityContext) (masked, readonly []string) {
	if security.GetMaskedPaths() != nil || security.GetReadonlyPaths() != nil {
		return security.GetMaskedPaths(), security.GetReadonlyPaths()
	}
	return []string{"/proc/asound", "/proc/acpi", "/proc/interrupts", "/proc/kcore", "/proc/keys", "/proc/latency_stats",
			"/proc/timer_list", "/proc/timer_stats", "/proc/sched_debug", "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/powercap"},
		[]string{"/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"}
}

const noSuidExecDev = unix.MS_NOSUID | unix.MS_NOEXEC | unix.MS_NODEV

// mountsOf starts with what every container has; a mount of the pod's at the same place replaces it.
func mountsOf(c *container) ([]boot.Mount, error) {
	security := c.config.GetLinux().GetSecurityContext()
	mounts := standardMounts(security.GetPrivileged())
	for target, source := range map[string]string{
		"/dev/shm":         c.sandbox.shmDir(),
		"/etc/hosts":       filepath.Join(c.sandbox.dir, hostsName),
		"/etc/hostname":    filepath.Join(c.sandbox.dir, hostnameName),
		"/etc/resolv.conf": filepath.Join(c.sandbox.dir, resolvName),
	} {
		readonly := security.GetReadonlyRootfs() && target != "/dev/shm"
		mounts = append(mounts, boot.Mount{Type: "bind", Source: source, Target: target, Readonly: readonly})
		if target == "/dev/shm" {
			continue // the pod's, or the host's
		}
		if err := selinux.Relabel(source, c.record.FileLabel); err != nil {
			return nil, err
		}
	}
	for _, mount := range c.config.GetMounts() {
		bound, err := c.podMount(mount)
		if err != nil {
			return nil, err
		}
		mounts = slices.DeleteFunc(mounts, func(other boot.Mount) bool { return other.Target == bound.Target })
		mounts = append(mounts, bound)
	}
	return mounts, nil
}

func standardMounts(privileged bool) []boot.Mount {
	sysFlags := uintptr(noSuidExecDev | unix.MS_RDONLY)
	devFlags := uintptr(unix.MS_NOSUID | unix.MS_STRICTATIME | unix.MS_NODEV) // what is mounted on top has its own flags
	if privileged {
		sysFlags = noSuidExecDev
		devFlags &^= unix.MS_NODEV
	}
	mounts := []boot.Mount{
		{Type: "proc", Source: "proc", Target: "/proc", Flags: noSuidExecDev},
		{Type: "tmpfs", Source: "tmpfs", Target: "/dev", Flags: devFlags, Data: "mode=755,size=64m"},
		{Type: "devpts", Source: "devpts", Target: "/dev/pts", Flags: unix.MS_NOSUID | unix.MS_NOEXEC,
			Data: "newinstance,ptmxmode=0666,mode=0620,gid=5"},
		{Type: "mqueue", Source: "mqueue", Target: "/dev/mqueue", Flags: noSuidExecDev},
		{Type: "sysfs", Source: "sysfs", Target: "/sys", Flags: sysFlags},
	}
	if cgroup.V2() {
		return append(mounts, boot.Mount{Type: "cgroup2", Source: "cgroup", Target: "/sys/fs/cgroup", Flags: sysFlags})
	}
	return append(
		mounts,
		boot.Mount{Type: "tmpfs", Source: "tmpfs", Target: "/sys/fs/cgroup", Flags: noSuidExecDev, Data: "mode=755,size=64k"},
	)
}

// imageMountName is where an image is mounted for the moment in which its tree is copied; it stays empty.
const imageMountName = "image"

func targetOf(mount *runtimeapi.Mount) string { return filepath.Clean("/" + mount.ContainerPath) }

// podMount is a mount that the pod asks for.
func (c *container) podMount(mount *runtimeapi.Mount) (boot.Mount, error) {
	if mount.GetImage().GetImage() == "" {
		return bindMount(mount, c.record.FileLabel)
	}
	layers := slices.Clone(c.record.Volumes[targetOf(mount)])
	slices.Reverse(layers)
	return boot.Mount{
		Type: "image", Source: filepath.Join(c.dir, imageMountName), Target: targetOf(mount), Lowers: layers, SubPath: mount.ImageSubPath,
	}, nil
}

func bindMount(mount *runtimeapi.Mount, label string) (boot.Mount, error) {
	bound := boot.Mount{
		Type: "bind", Source: mount.HostPath, Target: targetOf(mount),
		Readonly: mount.Readonly, RecursiveReadonly: mount.RecursiveReadOnly,
	}
	switch mount.Propagation {
	case runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER:
		bound.Propagation = boot.PropagationSlave
	case runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL:
		bound.Propagation = boot.PropagationShared
	}
	if _, err := os.Stat(bound.Source); errors.Is(err, os.ErrNotExist) {
		// What is missing becomes a directory, as with every other runtime.
		if err := os.MkdirAll(bound.Source, 0o755); err != nil {
			return boot.Mount{}, fmt.Errorf("mount source: %w", err)
		}
	}
	if mount.SelinuxRelabel {
		return bound, selinux.Relabel(bound.Source, label)
	}
	return bound, nil
}
