// Command pack writes the initramfs of package vm: the program that is the first process, and the modules of a kernel in the
// order in which it loads them.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/setpoint-io/setpoint/test/vm"
)

func main() {
	modules := flag.String("modules", "", "folder of the kernel's modules: lib/modules/<version>")
	first := flag.String("init", "", "program that is the first process")
	out := flag.String("out", "", "initramfs to write")
	flag.Parse()
	if err := pack(*modules, *first, *out); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

func pack(folder, first, out string) error {
	program, err := os.ReadFile(first)
	if err != nil {
		return err
	}
	kernel, err := kernelOf(folder)
	if err != nil {
		return err
	}
	modules, err := vm.LoadOrder(kernel)
	if err != nil {
		return err
	}
	files := []vm.File{{Name: "disk", Mode: 0o040755}, {Name: "init", Mode: 0o100755, Data: program}, {Name: "modules", Mode: 0o040755}}
	for i, module := range modules {
		files = append(files, vm.File{Name: fmt.Sprintf("modules/%03d-%s", i, module.Name), Mode: 0o100644, Data: module.Image})
	}
	archive, err := os.Create(out)
	if err != nil {
		return err
	}
	return errors.Join(vm.WriteArchive(archive, files), archive.Close())
}

func kernelOf(folder string) (vm.Kernel, error) {
	builtIn, err := os.ReadFile(filepath.Join(folder, "modules.builtin"))
	if err != nil {
		return vm.Kernel{}, err
	}
	inside := map[string]bool{}
	for line := range strings.FieldsSeq(string(builtIn)) {
		inside[vm.ModuleName(filepath.Base(line))] = true
	}
	files := map[string]string{}
	err = filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() && strings.Contains(entry.Name(), ".ko") {
			files[vm.ModuleName(entry.Name())] = path
		}
		return err
	})
	return vm.Kernel{
		BuiltIn: func(name string) bool { return inside[name] },
		Image: func(name string) ([]byte, error) {
			if path, ok := files[name]; ok {
				return read(path)
			}
			return nil, nil
		},
	}, err
}

// read returns a module as the kernel's ELF file; newer packages have it compressed.
func read(path string) ([]byte, error) {
	if strings.HasSuffix(path, ".xz") {
		return exec.Command("xz", "--decompress", "--stdout", path).Output()
	}
	return os.ReadFile(path)
}
