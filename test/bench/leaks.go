package main

import (
	"bytes"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// things are what pods of this machine may leave behind, by their kind: each is found by another way than the agent's own.
type things map[string]map[string]bool

// lookAround finds what this process's namespaces and the machine hold now.
func lookAround() things {
	found := things{"mounts": {}, "links": {}, "processes": {}, "namespaces": {}, "cgroups": {}, "loops": {}}
	mounts, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range bytes.Lines(mounts) {
		found["mounts"][strings.Fields(string(line))[4]] = true
	}
	links, _ := net.Interfaces()
	for _, link := range links {
		found["links"][link.Name] = true
	}
	processes, _ := filepath.Glob("/proc/[0-9]*")
	for _, process := range processes {
		command, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		if strings.HasPrefix(string(command), "setpoint-") {
			found["processes"][process] = true
		}
		for _, kind := range []string{"net", "ipc", "uts", "pid", "user", "cgroup"} {
			if namespace, err := os.Readlink(filepath.Join(process, "ns", kind)); err == nil {
				found["namespaces"][namespace] = true
			}
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, loop := range loops {
		found["loops"][loop] = true
	}
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			found["cgroups"][path] = true
		}
		return nil // a group may vanish at any time
	})
	return found
}

// since counts what was not there before.
func (now things) since(before things, m metrics) {
	for kind, names := range now {
		left := 0
		for name := range names {
			if !before[kind][name] {
				left++
				logf("left: %s %s", kind, name)
			}
		}
		m["left_"+kind] = float64(left)
	}
}
