package cgroup

import (
	"fmt"
	"strings"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // teaches the managers to restrict devices
	"github.com/opencontainers/cgroups/devices/config"
	"golang.org/x/sys/unix"
)

// Device is a device node that a group may use.
type Device struct {
	// Block tells a block device from a character device.
	Block        bool
	Major, Minor uint32
	// Access is any of "r", "w" and "m" (make the node); without any a node is a name, and no more.
	Access string
}

// DeviceAt is the node at a path of the machine.
func DeviceAt(path, access string) (Device, error) {
	var stat unix.Stat_t
	if err := unix.Stat(path, &stat); err != nil {
		return Device{}, fmt.Errorf("device %s: %w", path, err)
	}
	kind := stat.Mode & unix.S_IFMT
	if kind != unix.S_IFBLK && kind != unix.S_IFCHR {
		return Device{}, fmt.Errorf("device %s: not a device", path)
	}
	if strings.Trim(access, allAccess) != "" {
		return Device{}, fmt.Errorf("device %s: permissions %q: want some of r, w and m", path, access)
	}
	return Device{Block: kind == unix.S_IFBLK, Major: unix.Major(stat.Rdev), Minor: unix.Minor(stat.Rdev), Access: access}, nil
}

const allAccess = "rwm"

// AllowDevices lets the group use what every container has and these, and nothing else. Nodes may be made of any device:
// without reading and writing they are names only. It fails where devices cannot be restricted.
func (g *Group) AllowDevices(more []Device) error {
	rules := standardRules()
	for _, device := range more {
		if device.Access != "" {
			rules = append(rules, ruleOf(device))
		}
	}
	if err := g.manager.Set(&cgroups.Resources{Devices: rules}); err != nil {
		return fmt.Errorf("restrict devices of cgroup %s: %w", g.path, err)
	}
	return nil
}

func ruleOf(device Device) *config.Rule {
	kind := config.CharDevice
	if device.Block {
		kind = config.BlockDevice
	}
	return &config.Rule{
		Type: kind, Major: int64(device.Major), Minor: int64(device.Minor), Permissions: config.Permissions(device.Access), Allow: true,
	}
}

// standardRules are for OCI's standard devices: null, zero, full, random, urandom, tty, ptmx and pseudo terminals.
func standardRules() []*config.Rule {
	rules := []*config.Rule{
		{Type: config.CharDevice, Major: config.Wildcard, Minor: config.Wildcard, Permissions: "m", Allow: true},
		{Type: config.BlockDevice, Major: config.Wildcard, Minor: config.Wildcard, Permissions: "m", Allow: true},
		{Type: config.CharDevice, Major: 136, Minor: config.Wildcard, Permissions: allAccess, Allow: true},
	}
	for _, number := range [][2]uint32{{1, 3}, {1, 5}, {1, 7}, {1, 8}, {1, 9}, {5, 0}, {5, 2}} {
		rules = append(rules, ruleOf(Device{Major: number[0], Minor: number[1], Access: allAccess}))
	}
	return rules
}
