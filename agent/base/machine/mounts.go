package machine

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// writable are the mounts that container engines make read-only and that pods
// need: kernel settings of the network namespace, and cgroups.
var writable = []string{"/proc/sys", "/sys/fs/cgroup"}

// Prepare makes the container's kernel settings and cgroups writable and lets
// mounts propagate to pods. It needs SYS_ADMIN.
func Prepare() error {
	if !InContainer() {
		return nil
	}
	mounts, err := readMounts("/proc/self/mountinfo")
	if err != nil {
		return err
	}
	var errs []error
	for _, m := range mounts {
		if m.readOnly && wanted(m.path) {
			errs = append(errs, remountWritable(m))
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		errs = append(errs, fmt.Errorf("share mounts with pods: %w", err))
	}
	return errors.Join(errs...)
}

func wanted(path string) bool {
	for _, w := range writable {
		if path == w || strings.HasPrefix(path, w+"/") {
			return true
		}
	}
	return false
}

func remountWritable(m mount) error {
	if err := unix.Mount("", m.path, "", unix.MS_REMOUNT|unix.MS_BIND|m.flags, ""); err != nil {
		return fmt.Errorf("make %s writable (does the container have SYS_ADMIN?): %w", m.path, err)
	}
	return nil
}

// mount is a line of mountinfo. flags are those that a remount must repeat; upper is where an overlay
// keeps what is written to it.
type mount struct {
	path     string
	readOnly bool
	flags    uintptr
	upper    string
}

func readMounts(path string) ([]mount, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var mounts []mount
	scanner := bufio.NewScanner(file)
	for scanner.Scan() {
		if m, ok := parseMount(scanner.Text()); ok {
			mounts = append(mounts, m)
		}
	}
	return mounts, scanner.Err()
}

var keptFlags = map[string]uintptr{
	"nosuid": unix.MS_NOSUID, "nodev": unix.MS_NODEV, "noexec": unix.MS_NOEXEC,
	"noatime": unix.MS_NOATIME, "relatime": unix.MS_RELATIME,
}

// parseMount reads "ID parent major:minor root path options ... - type source options".
func parseMount(line string) (mount, bool) {
	fields := strings.Fields(line)
	const pathField, optionsField = 4, 5
	if len(fields) <= optionsField {
		return mount{}, false
	}
	m := mount{path: unescape.Replace(fields[pathField])}
	for _, option := range strings.Split(fields[optionsField], ",") {
		m.readOnly = m.readOnly || option == "ro"
		m.flags |= keptFlags[option]
	}
	for _, option := range strings.Split(fields[len(fields)-1], ",") {
		if upper, ok := strings.CutPrefix(option, "upperdir="); ok {
			m.upper = unescape.Replace(upper)
		}
	}
	return m, true
}

// unescape undoes what mountinfo does to what would end a field or a line.
var unescape = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
