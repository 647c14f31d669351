package cdi

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/proto"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
	specs "tags.cncf.io/container-device-interface/specs-go"
)

// Resolve is config with its CDI devices as nodes, mounts, variables and groups. dirs hold the specs, the later one counts more; none:
// the usual two.
func Resolve(config *runtimeapi.ContainerConfig, dirs []string) (*runtimeapi.ContainerConfig, error) {
	if len(config.GetCDIDevices()) == 0 {
		return config, nil
	}
	if len(dirs) == 0 {
		dirs = cdi.DefaultSpecDirs
	}
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(dirs...))
	if err != nil {
		return nil, fmt.Errorf("CDI: %w", err)
	}
	edits, err := editsOf(cache, config.CDIDevices)
	if err != nil {
		return nil, err
	}
	config = proto.CloneOf(config)
	for _, e := range edits {
		if err := apply(config, e.edits); err != nil {
			return nil, fmt.Errorf("CDI device %s: %w", e.device, err)
		}
	}
	config.CDIDevices = nil
	return config, nil
}

// edit is what a device, or the spec that has it, changes of a container.
type edit struct {
	device string
	edits  *specs.ContainerEdits
}

// editsOf are those of the devices in order, each after the edits of its spec, which come once: of two that say something about the same
// variable, node or mount the later one counts, so a device's count more than its spec's.
func editsOf(cache *cdi.Cache, names []*runtimeapi.CDIDevice) (all []edit, err error) {
	var seen []*cdi.Spec
	var missing []string
	for _, n := range names {
		device := cache.GetDevice(n.GetName())
		if device == nil {
			missing = append(missing, n.GetName())
			continue
		}
		if spec := device.GetSpec(); !slices.Contains(seen, spec) {
			seen, all = append(seen, spec), append(all, edit{n.GetName(), &spec.ContainerEdits})
		}
		all = append(all, edit{n.GetName(), &device.ContainerEdits})
	}
	if len(missing) > 0 {
		return nil, unresolved(cache, strings.Join(missing, ", "))
	}
	return all, nil
}

// unresolved says which specs could not be read: the devices may be in them.
func unresolved(cache *cdi.Cache, names string) error {
	var why []string
	for path, errs := range cache.GetErrors() {
		why = append(why, fmt.Sprintf("%s: %v", path, errs))
	}
	slices.Sort(why)
	if len(why) > 0 {
		return fmt.Errorf("unresolvable CDI devices %s (%s)", names, strings.Join(why, "; "))
	}
	return fmt.Errorf("unresolvable CDI devices %s", names)
}

func apply(config *runtimeapi.ContainerConfig, e *specs.ContainerEdits) error {
	switch {
	case len(e.Hooks) > 0:
		return fmt.Errorf("the embedded runtime runs no hooks (%s); use containerd", e.Hooks[0].Path)
	case len(e.NetDevices) > 0:
		return fmt.Errorf("the embedded runtime moves no network devices (%s); use containerd", e.NetDevices[0].HostInterfaceName)
	case e.IntelRdt != nil:
		return fmt.Errorf("the embedded runtime has no Intel RDT; use containerd")
	}
	for _, pair := range e.Env {
		key, value, _ := strings.Cut(pair, "=")
		config.Envs = append(config.Envs, &runtimeapi.KeyValue{Key: key, Value: []byte(value)})
	}
	for _, node := range e.DeviceNodes {
		device, err := deviceOf(node)
		if err != nil {
			return err
		}
		config.Devices = replace(config.Devices, device)
	}
	for _, m := range e.Mounts {
		mount, err := mountOf(m)
		if err != nil {
			return err
		}
		config.Mounts = replace(config.Mounts, mount)
	}
	if len(e.Mounts) > 0 { // what is mounted below another mount comes behind it
		slices.SortStableFunc(config.Mounts, func(a, b *runtimeapi.Mount) int { return cmp.Compare(depth(a), depth(b)) })
	}
	addGroups(config, e.AdditionalGIDs)
	return nil
}

// replace appends what is at a path of the container, in place of what was there.
func replace[T interface{ GetContainerPath() string }](all []T, latest T) []T {
	all = slices.DeleteFunc(all, func(a T) bool { return path.Clean(a.GetContainerPath()) == path.Clean(latest.GetContainerPath()) })
	return append(all, latest)
}

func depth(m *runtimeapi.Mount) int { return strings.Count(path.Clean(m.GetContainerPath()), "/") }

// deviceOf: the container sees the host's node itself, so its owner and mode cannot be others.
func deviceOf(node *specs.DeviceNode) (*runtimeapi.Device, error) {
	host := cmp.Or(node.HostPath, node.Path)
	var stat unix.Stat_t
	if err := unix.Stat(host, &stat); err != nil {
		return nil, fmt.Errorf("device %s: %w", host, err)
	}
	switch {
	case node.UID != nil && *node.UID != stat.Uid, node.GID != nil && *node.GID != stat.Gid:
		return nil, fmt.Errorf("device %s: the embedded runtime changes no owners of devices", host)
	case node.FileMode != nil && uint32(node.FileMode.Perm()) != stat.Mode&0o777:
		return nil, fmt.Errorf("device %s: the embedded runtime changes no modes of devices", host)
	case node.Major != 0 && (unix.Mkdev(uint32(node.Major), uint32(node.Minor)) != stat.Rdev):
		return nil, fmt.Errorf("device %s has the number %d:%d, not %d:%d", host, unix.Major(stat.Rdev), unix.Minor(stat.Rdev), node.Major, node.Minor)
	}
	return &runtimeapi.Device{ContainerPath: node.Path, HostPath: host, Permissions: permissionsOf(node)}, nil
}

// permissionsOf are those that CRI has: "none" of CDI is no letter at all, and nothing said is everything.
func permissionsOf(node *specs.DeviceNode) string {
	if node.Permissions == cdi.NoPermissions {
		return ""
	}
	return cmp.Or(node.Permissions, "rwm")
}

// mountOf: a source that is missing would be made, as for a pod's mount; of a driver's mount it is a mistake.
func mountOf(m *specs.Mount) (*runtimeapi.Mount, error) {
	if m.Type != "" && m.Type != "bind" && m.Type != "none" {
		return nil, fmt.Errorf("mount %s: the embedded runtime makes no mounts of type %s for devices", m.ContainerPath, m.Type)
	}
	if _, err := os.Stat(m.HostPath); err != nil {
		return nil, fmt.Errorf("mount %s: %w", m.ContainerPath, err)
	}
	out := &runtimeapi.Mount{ContainerPath: m.ContainerPath, HostPath: m.HostPath}
	for _, option := range m.Options {
		switch option {
		case "ro":
			out.Readonly = true
		case "rslave", "slave":
			out.Propagation = runtimeapi.MountPropagation_PROPAGATION_HOST_TO_CONTAINER
		case "rshared", "shared":
			out.Propagation = runtimeapi.MountPropagation_PROPAGATION_BIDIRECTIONAL
		case "bind", "rbind", "rw", "private", "rprivate", "nodev": // as every mount of a container
		case "nosuid": // what may become another user is the pod's affair: allowPrivilegeEscalation
		default:
			return nil, fmt.Errorf("mount %s: the embedded runtime does not know the option %s", m.ContainerPath, option)
		}
	}
	return out, nil
}

func addGroups(config *runtimeapi.ContainerConfig, groups []uint32) {
	if len(groups) == 0 {
		return
	}
	if config.Linux == nil {
		config.Linux = &runtimeapi.LinuxContainerConfig{}
	}
	if config.Linux.SecurityContext == nil {
		config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{}
	}
	security := config.Linux.SecurityContext
	for _, gid := range groups {
		if id := int64(gid); gid != 0 && !slices.Contains(security.SupplementalGroups, id) { // root's group is given by nobody
			security.SupplementalGroups = append(security.SupplementalGroups, id)
		}
	}
}
