package main

import (
	"archive/zip"
	"os"
	"path/filepath"
	"testing"
)

// TestNestedModulesComeIntoTheirFolders: the module proxy leaves them out of the module that replaces them by folders.
func TestNestedModulesComeIntoTheirFolders(t *testing.T) {
	proxy := t.TempDir()
	publish(t, proxy, "example.com/m", "m.go")
	publish(t, proxy, "example.com/m/api", "api.go")
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")

	r := recipe{module: "example.com/m", version: "v1.0.0", nested: []string{"api"}}
	module := filepath.Join(t.TempDir(), "module")
	if err := fetch(t.Context(), r, module); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"m.go", "api/go.mod", "api/api.go"} {
		if _, err := os.Stat(filepath.Join(module, file)); err != nil {
			t.Error(err)
		}
	}
	r.nested = []string{"gone"}
	if err := fetch(t.Context(), r, filepath.Join(t.TempDir(), "module")); err == nil {
		t.Error("a nested module that is not there is no error")
	}
}

// TestModulesBesideComeIntoTheirFolders: of any name, at a version of their own; or one folder of them.
func TestModulesBesideComeIntoTheirFolders(t *testing.T) {
	proxy := t.TempDir()
	publish(t, proxy, "example.com/m", "m.go")
	publish(t, proxy, "example.com/other", "crds.go")
	publish(t, proxy, "example.com/folders", "config/crd/crd.yaml")
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")

	r := recipe{module: "example.com/m", version: "v1.0.0", beside: map[string]string{
		"build/other": "example.com/other@v1.0.0", "build/crds": "example.com/folders@v1.0.0/config/crd",
	}}
	module := filepath.Join(t.TempDir(), "module")
	if err := fetch(t.Context(), r, module); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{"m.go", "build/other/crds.go", "build/crds/crd.yaml"} {
		if _, err := os.Stat(filepath.Join(module, file)); err != nil {
			t.Error(err)
		}
	}
}

// publish puts version 1.0.0 of a module of one empty file onto a proxy of files.
func publish(t *testing.T, proxy, module, file string) {
	t.Helper()
	folder := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	goMod := "module " + module + "\n"
	write(t, filepath.Join(folder, "v1.0.0.info"), `{"Version":"v1.0.0"}`)
	write(t, filepath.Join(folder, "v1.0.0.mod"), goMod)
	out, err := os.Create(filepath.Join(folder, "v1.0.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	archive := zip.NewWriter(out)
	for name, text := range map[string]string{"go.mod": goMod, file: "package x\n"} {
		w, err := archive.Create(module + "@v1.0.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestRaisedModules: the suite's module asks for them, and not for itself.
func TestRaisedModules(t *testing.T) {
	proxy := t.TempDir()
	publish(t, proxy, "example.com/m", "m.go")
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", "-modcacherw")

	r := recipe{module: "example.com/m", version: "v1.0.0", raised: []string{"example.com/library@v1.2.3", "example.com/m@v1.0.1"}}
	module := filepath.Join(t.TempDir(), "module")
	if err := fetch(t.Context(), r, module); err != nil {
		t.Fatal(err)
	}
	goMod, err := os.ReadFile(filepath.Join(module, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(goMod), "module example.com/m\n\nrequire example.com/library v1.2.3\n"; got != want {
		t.Errorf("go.mod is %q, want %q", got, want)
	}
	r.raised = []string{"no version"}
	if err := fetch(t.Context(), r, filepath.Join(t.TempDir(), "module")); err == nil {
		t.Error("a library without a version is no error")
	}
}
