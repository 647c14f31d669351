package vm

import (
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// A Run is one test binary, which of its tests are run, and where they can be.
type Run struct {
	Package string // below the root of the module: agent/runtime/cri/embedded
	Tests   string // -test.run
	Skip    string // -test.skip
	Since   string // the first kernel that can: 6.3
	Groups  string // the mode of cgroups that it is about: v2
	Module  string // the security module: selinux; without, apparmor
}

// TimeLimit ends a package whose tests do not. An emulated processor is ten times slower than the one below it.
const TimeLimit = 25 * time.Minute

// Binary is where the test binary stands on the disk.
func (r Run) Binary() string { return "/tests/" + strings.ReplaceAll(r.Package, "/", "-") + ".test" }

// Dir is where it runs, as `go test` runs it in the folder of the package: what it reads there is on the disk.
func (r Run) Dir() string { return path.Join("/src", r.Package) }

// Args are the arguments of the binary. As with `go test`, one that ends by os.Exit(0) before its tests have is not one that passed.
func (r Run) Args() []string {
	args := []string{"-test.v", "-test.paniconexit0", "-test.timeout=" + TimeLimit.String(), "-test.run=" + r.Tests}
	if r.Skip != "" {
		args = append(args, "-test.skip="+r.Skip)
	}
	return args
}

// defaultModule is the security module of Debian's kernels. Most tests have files that no policy of SELinux knows.
const defaultModule = "apparmor"

// Fits says whether it is for a kernel of this release (uname -r), with control groups of this mode and this security module.
func (r Run) Fits(release, groups, module string) bool {
	return (r.Since == "" || !older(release, r.Since)) && (r.Groups == "" || r.Groups == groups) && cmp.Or(r.Module, defaultModule) == module
}

func older(release, than string) bool { return slices.Compare(numbers(release), numbers(than)) < 0 }

// numbers are the first two of a version; one that is not there is 0.
func numbers(version string) []int {
	var major, minor int
	_, _ = fmt.Sscanf(version, "%d.%d", &major, &minor)
	return []int{major, minor}
}

// ParsePlan reads packages.txt. A line is a package and what it needs, such as "agent/runtime/userns run=^TestUsers skip=Slow since=6.3
// groups=v2 lsm=selinux"; without run, all of its tests are run. "#" begins a comment.
func ParsePlan(text string) ([]Run, error) {
	var runs []Run
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) == 0 {
			continue
		}
		run, err := parseRun(fields)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.TrimSpace(line), err)
		}
		runs = append(runs, run)
	}
	if len(runs) == 0 {
		return nil, errors.New("the plan names no package")
	}
	return runs, nil
}

func parseRun(fields []string) (Run, error) {
	run := Run{Package: fields[0], Tests: "."}
	settings := map[string]*string{"run": &run.Tests, "skip": &run.Skip, "since": &run.Since, "groups": &run.Groups, "lsm": &run.Module}
	for _, field := range fields[1:] {
		name, value, _ := strings.Cut(field, "=")
		setting := settings[name]
		if setting == nil || value == "" {
			return Run{}, fmt.Errorf("%q: want run=, skip=, since=, groups= or lsm=", field)
		}
		*setting = value
	}
	return run, nil
}
