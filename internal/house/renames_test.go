package house

import (
	"strings"
	"testing"
)

// unsyncedRenames are files that rename and sync no folder, and why a power cut may take the name back.
var unsyncedRenames = map[string]string{
	"agent/base/private/private.go":                "for what may fall back to its former content (package durable)",
	"agent/runtime/cri/embedded/damaged.go":        "records that cannot be read: they are kept for people",
	"agent/runtime/cri/embedded/images/add.go":     "a layer counts once it is settled, which syncs the file system",
	"agent/runtime/cri/embedded/images/tars.go":    "notes of a layer, which is read again without them",
	"agent/runtime/cri/embedded/shim/container.go": "how a container ended; none of before the power cut runs",
	"agent/runtime/logs/rotate.go":                 "logs of containers, which are not synced either",
	"internal/testlink/server.go":                  "the log of a test",
	"raftstore/replica/segments/maker.go":          "its disk syncs the names, and tests see when",
}

// What was renamed is under its name after a power cut once the folder is synced.
func TestHouseRenamesAreSynced(t *testing.T) {
	used := map[string]bool{}
	eachSource(t, func(f *sourceFile) {
		if f.test || strings.HasPrefix(f.dir, "test/") || strings.Contains(f.text, "yncFolder(") {
			return
		}
		for _, at := range calls(f, "os", "Rename") {
			used[f.path] = true
			if unsyncedRenames[f.path] == "" {
				t.Errorf("%s: os.Rename without a sync of the folder\n\twhy not: a power cut takes the name back; internal/durable knows how", at)
			}
		}
	})
	noLeftovers(t, "unsyncedRenames", unsyncedRenames, used)
}
