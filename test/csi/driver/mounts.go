package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// mounted tells whether something is mounted at a path itself.
func mounted(path string) bool {
	list, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(list)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}

func bind(from, to string, readOnly bool) error {
	if err := unix.Mount(from, to, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if !readOnly {
		return nil
	}
	return unix.Mount("", to, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, "")
}

// mountDevice has a volume's loop device at a path.
func mountDevice(file, to string) error {
	device := deviceOf(file)
	if device == "" {
		if err := command("losetup", "--find", file); err != nil {
			return err
		}
		device = deviceOf(file)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return err
	}
	point, err := os.OpenFile(to, os.O_CREATE|os.O_RDONLY, 0o600)
	if err != nil {
		return err
	}
	_ = point.Close()
	return bind(device, to, false)
}

// deviceOf is the loop device of a file; empty if it has none.
func deviceOf(file string) string {
	out, err := exec.Command("losetup", "--associated", file, "--noheadings", "--output", "NAME").Output()
	if err != nil {
		return ""
	}
	device, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return strings.TrimSpace(device)
}

func growDevice(file string) error {
	if device := deviceOf(file); device != "" {
		return command("losetup", "--set-capacity", device)
	}
	return nil
}

func releaseDevice(file string) error {
	if device := deviceOf(file); device != "" {
		return command("losetup", "--detach", device)
	}
	return nil
}
