package mutants

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// errOpenCage says that an attack would reach the host.
var errOpenCage = errors.New("the cage is open")

// checkCage looks at the result, not at what was done: each namespace is another than the host's, and each mount is read-only, or
// of a kind that has no file of the host's.
func checkCage() error {
	outside := strings.Fields(os.Getenv(cageEnv))
	inside, err := namespaces()
	if err != nil {
		return err
	}
	if len(outside) != len(inside) {
		return fmt.Errorf("%w: %s does not name the namespaces of who started this", errOpenCage, cageEnv)
	}
	for _, namespace := range inside {
		if slices.Contains(outside, namespace) {
			return fmt.Errorf("%w: %s is the host's", errOpenCage, namespace)
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	return checkMounts(string(mounts))
}

// namespaces are those of this thread, such as "net:[4026531840]".
func namespaces() ([]string, error) {
	var list []string
	for _, kind := range []string{"cgroup", "ipc", "mnt", "net", "pid", "uts"} {
		name, err := os.Readlink("/proc/thread-self/ns/" + kind)
		if err != nil {
			return nil, err
		}
		list = append(list, name)
	}
	return list, nil
}

// ownPlaces are where a mount may be writable, if it is one that the cage has made.
var ownPlaces = map[string][]string{
	"tmpfs":   append([]string{"/dev", "/dev/shm", groupsDir}, inMemory...),
	"devpts":  {"/dev/pts"},
	"proc":    {"/proc"},
	"cgroup":  nil, // each of a hierarchy below groupsDir
	"cgroup2": nil,
}

// checkMounts reads mountinfo(5): number, parent, device, root, place, options, optional fields, "-", kind, ...
func checkMounts(mountinfo string) error {
	for line := range strings.Lines(mountinfo) {
		before, after, _ := strings.Cut(line, " - ")
		fields := strings.Fields(before)
		kind, _, _ := strings.Cut(after, " ")
		if len(fields) < 6 {
			return fmt.Errorf("%w: cannot read %q", errOpenCage, line)
		}
		root, place := fields[3], fields[4]
		readOnly := slices.Contains(strings.Split(fields[5], ","), "ro")
		places, known := ownPlaces[kind]
		own := known && root == "/" && (slices.Contains(places, place) || places == nil && strings.HasPrefix(place, groupsDir))
		if !readOnly && !own {
			return fmt.Errorf("%w: %s is writable", errOpenCage, place)
		}
	}
	return nil
}
