package reset

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/setpoint-io/setpoint/agent/base/machine"
	"github.com/setpoint-io/setpoint/agent/net/network"
	"github.com/setpoint-io/setpoint/internal/process"
)

// ErrRunning says that a server or an agent runs, with files that were deleted perhaps.
var ErrRunning = errors.New("stop it first")

// notRunning looks for processes that keep a lock of the directory open: where that was deleted, its lock says nothing.
func notRunning(dir string) error {
	processes, err := machine.Processes()
	if err != nil {
		return err
	}
	for _, p := range processes {
		files := p.Files()
		for _, role := range []string{process.ServerRole, process.AgentRole} {
			if int(p) != os.Getpid() && slices.Contains(files, process.LockFile(dir, role)) && p.Sees(dir) {
				return fmt.Errorf("a setpoint (process %d) runs with %s: %w", p, dir, ErrRunning)
			}
		}
	}
	return nil
}

// otherAgent names an agent with another data directory that needs this machine's pod network, or "".
func otherAgent() string {
	processes, err := machine.Processes()
	if err != nil {
		return err.Error()
	}
	lock := filepath.Base(process.LockFile("", process.AgentRole))
	for _, p := range processes {
		keeps := slices.ContainsFunc(p.Files(), func(name string) bool { return filepath.Base(name) == lock })
		if keeps && int(p) != os.Getpid() && p.SameNetwork() {
			return fmt.Sprintf("process %d, an agent with another data directory, uses it", p)
		}
	}
	return ""
}

// otherPods tells whether pods are connected, when those of this data directory are gone.
func otherPods(bridge string) string {
	names, err := network.Connected(bridge)
	switch {
	case err != nil:
		return err.Error()
	case len(names) > 0:
		return fmt.Sprintf("%d pods of another data directory use it", len(names))
	}
	return ""
}

// checkDir refuses directories whose files are not all ours.
func checkDir(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !hasLock(dir) && !isRemains(dir, entries) {
		return fmt.Errorf("%s: %w", dir, ErrNoDataDir)
	}
	if _, err := os.Lstat(runtimeDir(dir)); err == nil && os.Geteuid() != 0 {
		return fmt.Errorf("%s: %w", dir, ErrNotRoot)
	}
	return checkMounts(dir)
}

func hasLock(dir string) bool {
	return slices.ContainsFunc([]string{process.ServerRole, process.AgentRole}, func(role string) bool {
		_, err := os.Lstat(process.LockFile(dir, role))
		return err == nil
	})
}

// ofAPod fits the files that an agent writes for its pods: an agent that still ran has perhaps written some after rm had
// been there.
var ofAPod = regexp.MustCompile(
	`^(pods/[0-9a-f]{8}-[0-9a-f-]{27}|runtime/(sandboxes|containers)/[0-9a-f]{32}([0-9a-f]{32})?|runtime/images/(layers|records|sizes))/`)

// isRemains tells whether these are the folders that rm could not remove, since something is mounted in them.
func isRemains(dir string, entries []os.DirEntry) bool {
	mounts, err := machine.MountsBelow(dir)
	if err != nil {
		return false
	}
	for _, entry := range entries {
		if name := entry.Name(); name != "pods" && name != "runtime" || foreign(dir, name, mounts) != nil {
			return false
		}
	}
	return true
}

// foreign finds a file in the folder of dir that no agent has written.
func foreign(dir, folder string, mounts []string) error {
	return filepath.WalkDir(filepath.Join(dir, folder), func(path string, entry fs.DirEntry, err error) error {
		below, relErr := filepath.Rel(dir, path)
		switch {
		case errors.Join(err, relErr) != nil:
			return errors.Join(err, relErr)
		case slices.Contains(mounts, path) && entry.IsDir():
			return fs.SkipDir
		case entry.IsDir(), slices.Contains(mounts, path), ofAPod.MatchString(below):
			return nil
		}
		return ErrNoDataDir
	})
}

// checkMounts refuses to delete what somebody else has mounted in the directory.
func checkMounts(dir string) error {
	mounts, err := machine.MountsBelow(dir)
	if err != nil {
		return err
	}
	for _, path := range mounts {
		ours := machine.Below(path, filepath.Join(dir, "pods")) || machine.Below(path, filepath.Join(dir, "plugins")) || machine.Below(path, filepath.Join(runtimeDir(dir), "sandboxes"))
		if path != dir && !ours {
			return fmt.Errorf("a file system is mounted at %s: %w", path, ErrMounted)
		}
	}
	return nil
}
