package main

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzConfig reads the file of --config.
func FuzzConfig(f *testing.F) {
	f.Add([]byte("name: server-1\ndata-dir: /x\nservers: 3\n"))
	f.Add([]byte("a: &a [x, x]\nb: [*a, *a]\n"))
	f.Add([]byte("? {}\n: 1\n"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "config.yaml")
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		_, _ = readConfig(path)
	})
}
