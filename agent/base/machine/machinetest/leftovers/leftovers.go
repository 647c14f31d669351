package leftovers

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Things are what pods may leave behind, by their kind.
type Things map[string]map[string]bool

// Scope says whose things count. Its zero value is this process's namespaces, and all groups and loop devices of the machine.
type Scope struct {
	// Node, if not empty, leaves out the groups of other nodes of the machine.
	Node string
	// Dir, if not empty, leaves out loop devices of files that are not below it.
	Dir string
	// Folders are those in which each file is a thing.
	Folders []string
	// Programs are processes that count beside the product's, by how their command lines begin.
	Programs []string
}

// groupsDir is where hierarchies of groups are mounted.
const groupsDir = "/sys/fs/cgroup"

// namespaceKinds are those that pods have of their own; those of mounts end with their processes.
var namespaceKinds = []string{"net", "ipc", "uts", "pid", "user", "cgroup"}

// Look finds what there is now.
func (s Scope) Look() Things {
	found := Things{}
	for kind, look := range map[string]func(add func(name string)){
		"mounts": mounts, "links": links, "processes": s.processes, "namespaces": namespaces,
		"cgroups": s.groups, "loops": s.loops, "files": s.files,
	} {
		found[kind] = map[string]bool{}
		look(func(name string) { found[kind][name] = true })
	}
	return found
}

// Since lists what was not there before, by its kind.
func (t Things) Since(before Things) map[string][]string {
	left := map[string][]string{}
	for kind, names := range t {
		left[kind] = []string{}
		for name := range names {
			if !before[kind][name] {
				left[kind] = append(left[kind], name)
			}
		}
		slices.Sort(left[kind])
	}
	return left
}

// mounts tells those of one place apart by how many there are.
func mounts(add func(string)) {
	table, _ := os.ReadFile("/proc/self/mountinfo")
	at := map[string]int{}
	for line := range bytes.Lines(table) {
		place := strings.Fields(string(line))[4]
		at[place]++
		add(strings.TrimSuffix(fmt.Sprintf("%s (%d)", place, at[place]), " (1)"))
	}
}

func links(add func(string)) {
	found, _ := net.Interfaces()
	for _, link := range found {
		add(link.Name)
	}
}

func eachProcess(visit func(dir, command string)) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline")) // empty if it has ended
		visit(dir, strings.TrimSpace(strings.ReplaceAll(string(command), "\x00", " ")))
	}
}

func (s Scope) processes(add func(string)) {
	eachProcess(func(dir, command string) {
		if slices.ContainsFunc(append(s.Programs, "setpoint-"), func(begin string) bool { return strings.HasPrefix(command, begin) }) {
			add(dir + " " + command)
		}
	})
}

func namespaces(add func(string)) {
	eachProcess(func(dir, _ string) {
		for _, kind := range namespaceKinds {
			if namespace, err := os.Readlink(filepath.Join(dir, "ns", kind)); err == nil {
				add(namespace)
			}
		}
	})
}

func (s Scope) groups(add func(string)) {
	_ = filepath.WalkDir(groupsDir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (s.Node == "" || slices.Contains(strings.Split(path, "/"), "setpoint-"+s.Node)) {
			add(path)
		}
		return nil // a group may vanish at any time
	})
}

func (s Scope) loops(add func(string)) {
	found, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, loop := range found {
		if file, err := os.ReadFile(loop); err == nil && strings.HasPrefix(string(file), s.Dir) {
			add(loop)
		}
	}
}

func (s Scope) files(add func(string)) {
	for _, folder := range s.Folders {
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			add(filepath.Join(folder, entry.Name()))
		}
	}
}
