package boot

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// Labelled adds to the options of a mount the SELinux label that all its files are to have.
func Labelled(options, label string) string {
	switch {
	case label == "":
		return options
	case options == "":
		return fmt.Sprintf("context=%q", label) // in quotes: a label may have commas
	}
	return fmt.Sprintf("%s,context=%q", options, label)
}

// optionsOf are the options of a mount that is the container's own. What the kernel shows in procfs, sysfs and cgroups it labels itself,
// and the message queues, which are mounted already, take no options.
func optionsOf(mount Mount, label string) string {
	switch mount.Type {
	case "tmpfs", "devpts":
		return Labelled(mount.Data, label)
	}
	return mount.Data
}

// labelQueues lets the container into the message queues of its pod.
func labelQueues(root rootDir, mount Mount, label string) error {
	if label == "" || mount.Type != "mqueue" {
		return nil
	}
	mounted, err := root.openDir(mount.Target)
	if err != nil {
		return err
	}
	defer unix.Close(mounted)
	return setLabel(mounted, label)
}

// openQueues does so for a container with users of its own: inside, none of them may label what the pod's first process has made.
func openQueues(spec *Spec, trees map[string]tree) error {
	for _, mount := range spec.Mounts {
		if spec.Label == "" || mount.Type != "mqueue" {
			continue
		}
		fd, err := newMount("mqueue", 0, nil)
		if err == nil {
			err = setLabel(fd, spec.Label)
		}
		if err != nil {
			return fmt.Errorf("message queues: %w", err)
		}
		trees[mount.Target] = tree{FD: fd, IsDir: true}
	}
	return nil
}

func setLabel(fd int, label string) error {
	err := unix.Setxattr(handle(fd), "security.selinux", []byte(label), 0)
	if errors.Is(err, unix.ENOTSUP) {
		return nil // the policy has one for all files of such a mount
	}
	return err
}
