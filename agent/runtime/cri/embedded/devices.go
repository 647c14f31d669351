package embedded

import "github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/cgroup"

// restrictDevices leaves a container its standard devices and those that its config names; a privileged one keeps all.
// Where the machine cannot restrict devices, perhaps inside another container, the container fails: a root that may open
// every disk of the host is not what it asked for.
func (c *container) restrictDevices() error {
	if c.config.GetLinux().GetSecurityContext().GetPrivileged() {
		return nil
	}
	var own []cgroup.Device
	for _, device := range c.config.GetDevices() {
		known, err := cgroup.DeviceAt(device.HostPath, device.Permissions)
		if err != nil {
			return err
		}
		own = append(own, known)
	}
	return c.group.AllowDevices(own)
}
