package main

import (
	"cmp"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"
)

// A module is something linked, and where its source lies on this machine.
type module struct {
	Path, Version, Dir string
}

func (m module) name() string { return strings.TrimSpace(m.Path + " " + m.Version) }

// linked are the modules that binaries hold, by path, with the main one first and Go's own library last.
func linked(binaries []string) ([]module, error) {
	found := map[string]bool{}
	var ids, main []string
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		main = []string{info.Main.Path}
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			if id := m.Path + "@" + m.Version; !found[id] {
				found[id], ids = true, append(ids, id)
			}
		}
	}
	slices.Sort(ids)
	modules, err := located(ids)
	if err != nil {
		return nil, err
	}
	own, err := goList("-m", main[0])
	if err != nil {
		return nil, err
	}
	own[0].Version = ""
	library := module{Path: "Go's own library", Version: runtime.Version(), Dir: goRoot()}
	return append(append(own, modules...), library), nil
}

// located finds the folders of path@version, and fetches what is not there.
func located(ids []string) ([]module, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	out, err := goOutput(append([]string{"mod", "download", "-json"}, ids...)...)
	if err != nil {
		return nil, err
	}
	modules, err := decodeModules(out)
	slices.SortFunc(modules, func(a, b module) int { return cmp.Compare(a.name(), b.name()) })
	return modules, err
}

func goList(args ...string) ([]module, error) {
	out, err := goOutput(append([]string{"list", "-json"}, args...)...)
	if err != nil {
		return nil, err
	}
	return decodeModules(out)
}

func decodeModules(text string) ([]module, error) {
	var modules []module
	for decoder := json.NewDecoder(strings.NewReader(text)); ; {
		var m module
		switch err := decoder.Decode(&m); {
		case errors.Is(err, io.EOF):
			return modules, nil
		case err != nil:
			return nil, err
		case m.Dir == "":
			return nil, fmt.Errorf("%s has no folder on this machine: go mod download", m.name())
		}
		modules = append(modules, m)
	}
}

func goRoot() string {
	root, err := goOutput("env", "GOROOT")
	if err != nil {
		return runtime.GOROOT() //nolint:staticcheck // what this program was built with
	}
	return strings.TrimSpace(root)
}

func goOutput(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, failed.Stderr)
	}
	return string(out), err
}
