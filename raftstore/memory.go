package raftstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// objectsPart of the memory that this process may use is what all objects may take.
// Beside it there are their decoded forms, the watch history, requests, and garbage.
const objectsPart = 5

// decodedBytes are charged for each object beside its bytes, since a small one takes more than objectsPart times these: of 200,000 pods
// of 1.4 KB each takes 17 KB of a server's memory (test/bench/HISTORY.md).
const decodedBytes = 3 << 10

// takenBytes are what is charged for all objects.
func takenBytes(root *state.Root) int64 { return root.Bytes() + decodedBytes*int64(root.Len()) }

// objectsLimit is the limit of the configuration, or what follows from the memory.
func (c *Config) objectsLimit() int64 {
	if c.ObjectsLimitBytes != 0 {
		return c.ObjectsLimitBytes
	}
	return memoryBytes("/proc/self/cgroup", "/sys/fs/cgroup") / objectsPart
}

// admitObjects refuses, on the leader, what would make all objects larger than its memory bears.
func (s *Store) admitObjects(c *command.Command) error {
	taken := takenBytes(s.Root())
	if taken < s.objectsLimit || s.objectsLimit <= 0 || essential(c) {
		return nil
	}
	return fmt.Errorf("%w: all objects take %d MiB, as much as the memory of %s allows: delete objects, or give all servers more memory",
		ErrNoSpace, taken>>20, s.cfg.Name)
}

// memoryBytes is what this process may use: the machine's memory, or less if the
// cgroup that the file names, or one above it, says so. 0 if nobody knows.
func memoryBytes(file, root string) int64 {
	least := machineBytes()
	text, err := os.ReadFile(file)
	if err != nil {
		return least
	}
	for line := range strings.Lines(string(text)) {
		if path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::"); unified {
			least = leastLimit(root, path, least)
		}
	}
	return least
}

// leastLimit looks at a cgroup and at all above it.
func leastLimit(root, path string, least int64) int64 {
	for path = filepath.Clean("/" + path); ; path = filepath.Dir(path) {
		text, err := os.ReadFile(filepath.Join(root, path, "memory.max"))
		if limit, bad := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && bad == nil &&
			(least == 0 || limit < least) {
			least = limit
		}
		if path == "/" {
			return least
		}
	}
}
