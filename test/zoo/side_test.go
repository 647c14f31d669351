package main

import (
	"os"
	"path/filepath"
	"slices"
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
	write(t, program, "#!/bin/sh\nsleep 1000 &\necho '\x16=== RUN   TestA'\n"+
		"test $(wc -l </proc/net/dev) -eq 4 && echo '\x16--- PASS: TestA (0.00s)'\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	tr := trial{program: program, dir: folder, folder: filepath.Join(folder, "side")}
	came, err := tr.run(t.Context())
	if err != nil || came.why != "" || came.specs["TestA"] != passed || !came.left {
		t.Errorf("%+v, %v", came, err)
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
	write(t, program, "#!/bin/sh\necho '\x16=== RUN   TestA'\nsleep 0.2\n")
	if err := os.Chmod(program, 0o755); err != nil {
		t.Fatal(err)
	}
	tr := trial{program: program, dir: folder, folder: filepath.Join(folder, "side"), recipe: recipe{limit: time.Nanosecond}}
	came, err := tr.run(t.Context())
	if err != nil || came.why != "takes longer than 1ns" || came.specs["TestA"] != failed || came.left {
		t.Errorf("%+v, %v", came, err)
	}
}

// TestTheEnvironmentNamesTheServers: by the variables of both kinds of suites, and the module's folder where a recipe asks.
func TestTheEnvironmentNamesTheServers(t *testing.T) {
	tr := trial{module: "/m", folder: "/f", assets: "/a", recipe: recipe{env: []string{"CRDS=$MODULE/crds"}}}
	env := tr.environment()
	for _, want := range []string{
		"KUBEBUILDER_ASSETS=/a", "TEST_ASSET_ETCD=/a/etcd", "TEST_ASSET_KUBE_APISERVER=/a/kube-apiserver", "CRDS=/m/crds", "HOME=/f/home",
	} {
		if !slices.Contains(env, want) {
			t.Errorf("%s is not in %q", want, env)
		}
	}
}

// TestATestProgramHasTheRecipesFlags: after those that every program is called with.
func TestATestProgramHasTheRecipesFlags(t *testing.T) {
	tr := trial{program: "/p", folder: "/f", recipe: recipe{run: "^TestA$", flags: []string{"-real"}}}
	args := tr.command(t.Context(), time.Second).Args
	if got, want := args[len(args)-3:], []string{"-test.run", "^TestA$", "-real"}; !slices.Equal(got, want) {
		t.Errorf("the last arguments are %q, want %q", got, want)
	}
}
