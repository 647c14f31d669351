package raftstore

import (
	"os"
	"path/filepath"
	"testing"
)

func TestMemoryOfACgroup(t *testing.T) {
	machine := memoryBytes("/nowhere", "/nowhere")
	if machine < 64<<20 {
		t.Fatalf("the machine has %d bytes", machine)
	}
	for name, c := range map[string]struct {
		line   string
		limits map[string]string
		want   int64
	}{
		"none":               {"0::/a/b\n", map[string]string{"a": "max", "a/b": "max"}, machine},
		"its own":            {"0::/a/b\n", map[string]string{"a": "max", "a/b": "1000000"}, 1000000},
		"one above":          {"0::/a/b\n", map[string]string{"a": "1000000", "a/b": "2000000"}, 1000000},
		"in a namespace":     {"0::/\n", map[string]string{"": "1000000"}, 1000000},
		"outside of it":      {"0::/../..\n", map[string]string{"": "1000000"}, 1000000},
		"the older version":  {"4:memory:/a\n", map[string]string{"a": "1000000"}, machine},
		"more than there is": {"0::/a\n", map[string]string{"a": "9223372036854771712"}, machine},
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			file := filepath.Join(root, "self")
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(file, c.line)
			for group, limit := range c.limits {
				write(filepath.Join(root, group, "memory.max"), limit+"\n")
			}
			if got := memoryBytes(file, root); got != c.want {
				t.Errorf("%d, want %d", got, c.want)
			}
		})
	}
}
