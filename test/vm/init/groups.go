package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

const groupsRoot = "/sys/fs/cgroup"

// mountGroups mounts the control groups as a distribution has them: "v2", all in one tree; "v1", a tree for each controller;
// "hybrid", the same with an empty tree of v2 beside them, as systemd did for years.
func mountGroups(mode string) error {
	switch mode {
	case "v2":
		return mountUnified()
	case "v1":
		return mountSeparate()
	case "hybrid":
		if err := mountSeparate(); err != nil {
			return err
		}
		return mountAll([]mount{{"cgroup2", filepath.Join(groupsRoot, "unified"), "cgroup2", ""}})
	}
	return fmt.Errorf("vm.cgroup=%s: want v2, v1 or hybrid", mode)
}

// mountUnified passes every controller on, and puts this process into a group of its own, as systemd leaves none in the root.
func mountUnified() error {
	if err := mountAll([]mount{{"cgroup2", groupsRoot, "cgroup2", "nsdelegate"}}); err != nil {
		return err
	}
	controllers, err := os.ReadFile(filepath.Join(groupsRoot, "cgroup.controllers"))
	if err != nil {
		return err
	}
	for name := range strings.FieldsSeq(string(controllers)) {
		if err := os.WriteFile(filepath.Join(groupsRoot, "cgroup.subtree_control"), []byte("+"+name), 0); err != nil {
			return fmt.Errorf("controller %s: %w", name, err)
		}
	}
	own := filepath.Join(groupsRoot, "tests.service")
	if err := os.Mkdir(own, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0)
}

func mountSeparate() error {
	mounts := []mount{{"tmpfs", groupsRoot, "tmpfs", "mode=755"}}
	names, err := v1Controllers()
	if err != nil {
		return err
	}
	for _, name := range names {
		mounts = append(mounts, mount{"cgroup", filepath.Join(groupsRoot, name), "cgroup", name})
	}
	return mountAll(append(mounts, mount{"cgroup", filepath.Join(groupsRoot, "systemd"), "cgroup", "none,name=systemd"}))
}

// v1Controllers reads /proc/cgroups: name, hierarchy, number of groups, enabled.
func v1Controllers() ([]string, error) {
	file, err := os.Open("/proc/cgroups")
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var names []string
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) == 4 && fields[3] == "1" {
			names = append(names, fields[0])
		}
	}
	return names, lines.Err()
}
