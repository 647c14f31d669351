package demoimage

import (
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/images"
)

// Repository of the demo images; the tags are Versions.
const Repository = images.LocalDomain + "/demo"

// Port on which the demo server listens.
const Port = "8080/tcp"

// Versions lists the tags: two that work, for rollouts, and one that never becomes ready.
func Versions() []string { return []string{"v1", "v2", "broken"} }

// Build describes the images. executable is the program they contain, which must run package demo when called with
// "demo"; empty means this one.
func Build(executable string) ([]images.Local, error) {
	executable, err := orOwn(executable)
	if err != nil {
		return nil, fmt.Errorf("demo image: %w", err)
	}
	key, err := identity(executable)
	if err != nil {
		return nil, fmt.Errorf("demo image: %w", err)
	}
	var built []images.Local
	for _, version := range Versions() {
		built = append(built, images.Local{
			Tag:      Repository + ":" + version,
			LayerKey: key,
			Fill:     func(dir string) (uint64, error) { return fill(dir, executable) },
			Config: v1.Config{
				Entrypoint:   []string{"/setpoint", "demo", "--version", version},
				Env:          []string{"PATH=/"},
				ExposedPorts: map[string]struct{}{Port: {}},
				WorkingDir:   "/",
			},
		})
	}
	return built, nil
}

func orOwn(executable string) (string, error) {
	if executable != "" {
		return executable, nil
	}
	return os.Executable()
}

// Static tells whether the executable (empty means this one) runs without a dynamic loader, and so alone in an image.
func Static(executable string) (bool, error) {
	executable, err := orOwn(executable)
	if err != nil {
		return false, err
	}
	file, err := elf.Open(executable)
	if err != nil {
		return false, fmt.Errorf("%s: %w", executable, err)
	}
	defer file.Close()
	return !slices.ContainsFunc(file.Progs, func(program *elf.Prog) bool { return program.Type == elf.PT_INTERP }), nil
}

// identity names the executable's content by file, size and time: hashing 90 MB at every start would cost more than
// the whole start.
func identity(executable string) (string, error) {
	var stat unix.Stat_t
	if err := unix.Stat(executable, &stat); err != nil {
		return "", fmt.Errorf("%s: %w", executable, err)
	}
	return fmt.Sprintf("demo %d:%d %d %d.%d", stat.Dev, stat.Ino, stat.Size, stat.Mtim.Sec, stat.Mtim.Nsec), nil
}

func fill(dir, executable string) (uint64, error) {
	target := filepath.Join(dir, "setpoint")
	info, err := os.Stat(executable)
	if err != nil {
		return 0, err
	}
	resolved, err := filepath.EvalSymlinks(executable)
	if err != nil {
		return 0, err
	}
	// Another file system, or one without hard links: then one copy, made once.
	if os.Link(resolved, target) != nil {
		if err := copyFile(resolved, target); err != nil {
			return 0, err
		}
	}
	return uint64(info.Size()), nil
}

func copyFile(from, to string) error {
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		return err
	}
	_, err = io.Copy(target, source)
	return errors.Join(err, target.Close())
}
