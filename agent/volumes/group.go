package volumes

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// What members of the pod's fsGroup may do with its volumes.
const (
	groupMayUse   = 0o660
	groupMayEnter = 0o110
)

// groupPatience is how long files may be given to the group before the pod has an event, reasonSlowGroup; both are upstream's.
const (
	groupPatience   = 30 * time.Second
	reasonSlowGroup = "VolumePermissionChangeInProgress"
)

// setGroup gives the files of a volume to the pod's fsGroup, unless its policy says that the volume's root shows that this was done.
// Another pod may be writing there: links are never followed out of the volume, and what is gone by now is left out.
func (m *Manager) setGroup(ctx context.Context, pod *corev1.Pod, path string) error {
	group := fsGroup(pod)
	if group == nil {
		return nil
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return err
	}
	defer root.Close()
	if onlyOnMismatch(pod) {
		if info, err := root.Stat("."); err == nil && belongs(info, *group) {
			return nil
		}
	}
	slow := time.AfterFunc(groupPatience, func() { m.warn(pod, reasonSlowGroup, slowGroup(pod, path)) })
	defer slow.Stop()
	return giveAll(ctx, root, int(*group))
}

// slowGroup is upstream's message; of the path it has what begins with the pod's uid.
func slowGroup(pod *corev1.Pod, path string) string {
	if at := strings.Index(path, string(pod.UID)); at > 0 {
		path = path[at:]
	}
	return fmt.Sprintf("Setting volume ownership for %s is taking longer than expected, consider using OnRootMismatch - https://kubernetes.io/docs/tasks/"+
		"configure-pod-container/security-context/#configure-volume-permission-and-ownership-change-policy-for-pods", path)
}

func onlyOnMismatch(pod *corev1.Pod) bool {
	policy := pod.Spec.SecurityContext.FSGroupChangePolicy
	return policy != nil && *policy == corev1.FSGroupChangeOnRootMismatch
}

// belongs tells whether the root of a volume is as giveAll leaves it.
func belongs(root fs.FileInfo, group int64) bool {
	stat, ok := root.Sys().(*syscall.Stat_t)
	mode := root.Mode()
	const wanted = groupMayUse | groupMayEnter
	return ok && int64(stat.Gid) == group && mode&fs.ModeSetgid != 0 && mode.Perm()&wanted == wanted
}

// giveAll changes the root last, so that a walk that was cut short is seen by OnRootMismatch.
func giveAll(ctx context.Context, root *os.Root, group int) error {
	err := fs.WalkDir(root.FS(), ".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return gone(err)
		case ctx.Err() != nil:
			return ctx.Err()
		case path == ".":
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return gone(err)
		}
		return gone(give(root, path, info, group))
	})
	if err != nil {
		return err
	}
	info, err := root.Stat(".")
	if err != nil {
		return err
	}
	return give(root, ".", info, group)
}

func give(root *os.Root, path string, info fs.FileInfo, group int) error {
	if err := root.Lchown(path, -1, group); err != nil || info.Mode()&fs.ModeSymlink != 0 {
		return err
	}
	mode := info.Mode() | groupMayUse
	if info.IsDir() {
		mode |= fs.ModeSetgid | groupMayEnter
	}
	return root.Chmod(path, mode)
}

// gone forgives that a file was removed meanwhile.
func gone(err error) error {
	if os.IsNotExist(err) {
		return nil
	}
	return err
}
