package cgroup

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/agent/base/machine"
)

// PrepareContainer makes room for child groups when this process runs in a container of its own with cgroup v2: its own
// group is then the root of all it may use, and a group with processes cannot have children with controllers. It
// moves every process into a leaf and enables the controllers. On a host, and on v1, it does nothing.
func PrepareContainer() error {
	if !machine.InContainer() || !V2() {
		return nil
	}
	const root = "/sys/fs/cgroup"
	leaf := filepath.Join(root, "init")
	if err := os.MkdirAll(leaf, 0o755); err != nil {
		return fmt.Errorf("prepare cgroups: %w", err)
	}
	procs, err := os.ReadFile(filepath.Join(root, "cgroup.procs"))
	if err != nil {
		return fmt.Errorf("prepare cgroups: %w", err)
	}
	for pid := range strings.FieldsSeq(string(procs)) {
		if _, err := strconv.Atoi(pid); err != nil {
			continue
		}
		// A process that ended meanwhile cannot be moved and need not be.
		_ = os.WriteFile(filepath.Join(leaf, "cgroup.procs"), []byte(pid), 0)
	}
	controllers, err := os.ReadFile(filepath.Join(root, "cgroup.controllers"))
	if err != nil {
		return fmt.Errorf("prepare cgroups: %w", err)
	}
	var enable []string
	for controller := range strings.FieldsSeq(string(controllers)) {
		enable = append(enable, "+"+controller)
	}
	if err := os.WriteFile(filepath.Join(root, "cgroup.subtree_control"), []byte(strings.Join(enable, " ")), 0); err != nil {
		return fmt.Errorf("enable cgroup controllers: %w", err)
	}
	return nil
}
