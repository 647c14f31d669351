package embedded

import (
	"fmt"
	"strings"

	"golang.org/x/sys/unix"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/cri/embedded/cgroup"
)

// restrictDevices leaves a container its standard devices and those that its config names; a privileged one keeps all.
// Where the machine cannot restrict devices, perhaps inside another container, the container fails: a root that may open
// every disk of the host is not what it asked for.
func (c *container) restrictDevices() error {
	if c.config.GetLinux().GetSecurityContext().GetPrivileged() {
		return nil
	}
	var own []cgroup.Device
	for _, device := range c.config.GetDevices() {
		known, err := deviceOf(device)
		if err != nil {
			return err
		}
		if known.Access != "" { // without any it is a name in /dev, and no more
			own = append(own, known)
		}
	}
	return c.group.AllowDevices(own)
}

func deviceOf(device *runtimeapi.Device) (cgroup.Device, error) {
	var stat unix.Stat_t
	if err := unix.Stat(device.HostPath, &stat); err != nil {
		return cgroup.Device{}, fmt.Errorf("device %s: %w", device.HostPath, err)
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFBLK && kind != unix.S_IFCHR {
		return cgroup.Device{}, fmt.Errorf("device %s: not a device", device.HostPath)
	}
	if strings.Trim(device.Permissions, "rwm") != "" {
		return cgroup.Device{}, fmt.Errorf("device %s: permissions %q: want some of r, w and m", device.HostPath, device.Permissions)
	}
	return cgroup.Device{
		Block: kind == unix.S_IFBLK, Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev), Access: device.Permissions,
	}, nil
}
