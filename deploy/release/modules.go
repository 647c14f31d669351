package main

import (
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"strings"
)

// A module is something linked, and where its source lies on this machine.
type module struct {
	Path, Version, Dir string
}

func (m module) name() string { return strings.TrimSpace(m.Path + " " + m.Version) }

// linked are the modules that binaries of one program hold, by path, with the main one first and Go's own library last.
func linked(binaries []string) ([]module, error) {
	var own, golang string
	ids := map[string]bool{} // path@version
	for _, binary := range binaries {
		info, err := buildinfo.ReadFile(binary)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", binary, err)
		}
		own, golang = info.Main.Path, info.GoVersion
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			ids[m.Path+"@"+m.Version] = true
		}
	}
	this, err := modulesOf("list", "-m", "-json", own)
	if err != nil {
		return nil, err
	}
	this[0].Version = ""
	others, err := modulesOf(append([]string{"mod", "download", "-json"}, slices.Sorted(maps.Keys(ids))...)...)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(others, func(a, b module) int { return strings.Compare(a.name(), b.name()) })
	root, err := goOutput("env", "GOROOT")
	library := module{Path: "Go's own library", Version: golang, Dir: strings.TrimSpace(root)}
	return append(append(this, others...), library), err
}

// modulesOf are those of which a go command tells where they are, fetched if they are not there.
func modulesOf(args ...string) ([]module, error) {
	out, err := goOutput(args...)
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

func goOutput(args ...string) (string, error) {
	out, err := exec.Command("go", args...).Output()
	if failed := new(exec.ExitError); errors.As(err, &failed) {
		err = fmt.Errorf("go %s: %w\n%s", args[0], err, failed.Stderr)
	}
	return string(out), err
}
