package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestMain stands in for the command where a test starts it again as the first process of a namespace.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == insideCommand {
		os.Exit(inside(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// TestASideHasNamespacesOfItsOwn: a program that sees loopback and a bridge to nowhere, and leaves a process behind.
func TestASideHasNamespacesOfItsOwn(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: nothing is run")
		return
	}
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	write(t, program, "#!/bin/sh\nsleep 1000 &\necho '=== RUN   TestA'\n"+
		"test $(wc -l </proc/net/dev) -eq 4 && echo '--- PASS: TestA (0.00s)'\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	tr := trial{program: program, dir: folder, folder: filepath.Join(folder, "side")}
	found, _, why, err := tr.run(t.Context())
	if err != nil || why != "" || found["TestA"] != passed {
		t.Errorf("%v, %q, %v", found, why, err)
	}
	said, err := os.ReadFile(filepath.Join(folder, "side", "output"))
	if err != nil || !strings.Contains(string(said), leftProcesses) {
		t.Errorf("%s, %v", said, err)
	}
}

// TestATestProgramThatHangs: its limit is told, and what it did not end has failed.
func TestATestProgramThatHangs(t *testing.T) {
	if os.Getuid() != 0 {
		t.Log("not root: nothing is run")
		return
	}
	folder := t.TempDir()
	program := filepath.Join(folder, "program")
	write(t, program, "#!/bin/sh\necho '=== RUN   TestA'\nsleep 0.2\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	tr := trial{program: program, dir: folder, folder: filepath.Join(folder, "side"), recipe: recipe{limit: time.Nanosecond}}
	found, _, why, err := tr.run(t.Context())
	if err != nil || why != "takes longer than 1ns" || found["TestA"] != failed {
		t.Errorf("%v, %q, %v", found, why, err)
	}
}
