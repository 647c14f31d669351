package mutants

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

const groupsDir = "/sys/fs/cgroup"

// mountGroups shows the cage's own cgroup as the root of all, in each hierarchy that this process is in.
func mountGroups() error {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return err
	}
	if strings.TrimSpace(string(text)) == "0::/" {
		return mountOneHierarchy()
	}
	if err := mount("tmpfs", groupsDir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, "mode=755"); err != nil {
		return err
	}
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, _, _ := strings.Cut(rest, ":")
		kind, name := "cgroup", strings.TrimPrefix(controllers, "name=")
		if controllers == "" {
			kind, name = "cgroup2", "unified"
		}
		dir := filepath.Join(groupsDir, name)
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := mount(kind, dir, kind, unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, controllers); err != nil {
			return err
		}
	}
	return nil
}

// mountOneHierarchy is for cgroup v2 alone, where a group with processes has no limits for those below it: this process moves down.
func mountOneHierarchy() error {
	if err := mount("cgroup2", groupsDir, "cgroup2", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return err
	}
	own := filepath.Join(groupsDir, "trial")
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0); err != nil {
		return err
	}
	controllers, err := os.ReadFile(filepath.Join(groupsDir, "cgroup.controllers"))
	if err != nil {
		return err
	}
	enabled := "+" + strings.Join(strings.Fields(string(controllers)), " +")
	if err := os.WriteFile(filepath.Join(groupsDir, "cgroup.subtree_control"), []byte(enabled), 0); err != nil {
		return fmt.Errorf("enable cgroup controllers %s: %w", enabled, err)
	}
	return nil
}
