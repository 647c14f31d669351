package cgroup

import (
	"fmt"

	"github.com/opencontainers/cgroups"
	_ "github.com/opencontainers/cgroups/devices" // teaches the managers to restrict devices
	"github.com/opencontainers/cgroups/devices/config"
)

// Device is a device node that a group may use.
type Device struct {
	// Block tells a block device from a character device.
	Block        bool
	Major, Minor uint32
	// Access is any of "r", "w" and "m" (make the node).
	Access string
}

const allAccess = "rwm"

// AllowDevices lets the group use what every container has and these, and nothing else. Nodes may be made of any device:
// without reading and writing they are names only. It fails where devices cannot be restricted.
func (g *Group) AllowDevices(more []Device) error {
	rules := standardRules()
	for _, device := range more {
		rules = append(rules, ruleOf(device))
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
