package cgroup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/cgroups"
)

// NodePrefix begins the names of the outermost groups, one for each node of this machine.
const NodePrefix = "/setpoint-"

// Find returns the paths of all groups called name below the group at root, for whoever has lost the path. A root that does
// not exist has none.
func Find(root, name string) ([]string, error) {
	return FindFunc(root, func(other string) bool { return other == name })
}

// FindFunc is Find for all names that fit. What is below a group that fits is not looked at.
func FindFunc(root string, fits func(name string) bool) ([]string, error) {
	group, err := Open(root)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range group.dirs {
		err := filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
			if errors.Is(err, os.ErrNotExist) {
				return nil // groups come and go
			}
			if err != nil || !entry.IsDir() || !fits(entry.Name()) {
				return err
			}
			below, err := filepath.Rel(dir, at)
			if err != nil {
				return err
			}
			found = append(found, path.Join(root, below))
			return fs.SkipDir
		})
		if err != nil {
			return nil, fmt.Errorf("look for cgroups below %s: %w", root, err)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// Roots returns the paths of the outermost groups whose names begin with prefix, "/" and a few letters.
func Roots(prefix string) ([]string, error) {
	group, err := Open(prefix)
	if err != nil {
		return nil, err
	}
	var found []string
	for _, dir := range group.dirs {
		entries, err := os.ReadDir(filepath.Dir(dir))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, fmt.Errorf("look for cgroups %s: %w", prefix, err)
		}
		for _, entry := range entries {
			if name := "/" + entry.Name(); entry.IsDir() && strings.HasPrefix(name, prefix) {
				found = append(found, name)
			}
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// End kills everything in the group at path and removes it, and its parents as TrimParents does. A process that has died, or that
// enters the group meanwhile, holds it for a moment: End tries again, for KillTimeMax.
func End(path string) error {
	group, err := Open(path)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(KillTimeMax); ; time.Sleep(killPollInterval) {
		if err := group.Kill(); err != nil {
			return err
		}
		if err = group.Destroy(); err == nil || time.Now().After(deadline) {
			group.TrimParents()
			return err
		}
	}
}

// Processes are those of the group and its children; a group that does not exist has none.
func (g *Group) Processes() ([]int, error) {
	pids, err := cgroups.GetAllPids(g.anyDir())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("cgroup %s: %w", g.path, err)
	}
	return pids, nil
}

// Changed is when a child was made or removed last; zero if the group does not exist.
func (g *Group) Changed() time.Time {
	info, err := os.Stat(g.anyDir())
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// TrimEmpty removes the group and those below it, as far as nobody is in them.
func (g *Group) TrimEmpty() {
	for _, dir := range g.dirs {
		var below []string
		_ = filepath.WalkDir(dir, func(at string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				below = append(below, at)
			}
			return nil // groups come and go
		})
		for _, at := range slices.Backward(below) {
			_ = os.Remove(at) // the kernel refuses one that is in use
		}
	}
}
