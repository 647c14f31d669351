package volumes

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	corev1 "k8s.io/api/core/v1"
)

// checkHostPath creates what the type says may be created and refuses the rest.
func checkHostPath(h *corev1.HostPathVolumeSource) error {
	kind := corev1.HostPathUnset
	if h.Type != nil {
		kind = *h.Type
	}
	switch kind {
	case corev1.HostPathDirectoryOrCreate:
		if err := os.MkdirAll(h.Path, 0o755); err != nil {
			return err
		}
	case corev1.HostPathFileOrCreate:
		f, err := os.OpenFile(h.Path, os.O_CREATE|os.O_EXCL, 0o644) // what is there may be a pipe, which is not to be opened
		if err == nil {
			err = f.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	case corev1.HostPathUnset:
		return nil
	}
	info, err := os.Stat(h.Path)
	if err == nil && matchesType(info.Mode(), kind) {
		return nil
	}
	return fmt.Errorf("hostPath type check failed: %s is not a %s", h.Path, hostPathNames[kind])
}

var hostPathNames = map[corev1.HostPathType]string{
	corev1.HostPathDirectory: "directory", corev1.HostPathDirectoryOrCreate: "directory",
	corev1.HostPathFile: "file", corev1.HostPathFileOrCreate: "file",
	corev1.HostPathSocket: "socket file", corev1.HostPathCharDev: "character device", corev1.HostPathBlockDev: "block device",
}

func matchesType(mode os.FileMode, kind corev1.HostPathType) bool {
	switch kind {
	case corev1.HostPathDirectory, corev1.HostPathDirectoryOrCreate:
		return mode.IsDir()
	case corev1.HostPathFile, corev1.HostPathFileOrCreate:
		return mode.IsRegular()
	case corev1.HostPathSocket:
		return mode&os.ModeSocket != 0
	case corev1.HostPathCharDev:
		return mode&os.ModeCharDevice != 0
	case corev1.HostPathBlockDev:
		return mode&os.ModeDevice != 0 && mode&os.ModeCharDevice == 0
	default:
		return false
	}
}
