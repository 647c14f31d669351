package podconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// ownLogs is where logs are if no other place was chosen.
func (d Dirs) ownLogs() string { return filepath.Join(d.Root, "logs") }

// AllLogs is the directory of the directories of all pods' logs.
func (d Dirs) AllLogs() string { return cmp.Or(d.LogsRoot, d.ownLogs()) }

// Logs is the directory of a pod's logs, named as upstream's.
func (d Dirs) Logs(namespace, name, uid string) string {
	return filepath.Join(d.AllLogs(), strings.Join([]string{namespace, name, uid}, "_"))
}

// PodLogs is Logs of pod.
func (d Dirs) PodLogs(pod *corev1.Pod) string {
	return d.Logs(pod.Namespace, pod.Name, string(pod.UID))
}

// LogPath is where the runtime writes, relative to the sandbox's log directory.
func LogPath(container string, attempt int) string {
	return filepath.Join(container, strconv.Itoa(attempt)+".log")
}

// LogFile is where the runtime says that a container's log is, or where it was told to write. The first counts for sandboxes of before
// the node had another LogsRoot.
func (d Dirs) LogFile(run *observed.Container) string {
	if filepath.IsAbs(run.LogPath) {
		return run.LogPath
	}
	l := run.Labels
	pod := d.Logs(l[observed.LabelPodNamespace], l[observed.LabelPodName], l[observed.LabelPodUID])
	return filepath.Join(pod, LogPath(run.ContainerName(), run.RestartCount()))
}

// RemoveLogs removes the logs of the pod with a uid, also those of before the node had another LogsRoot.
func (d Dirs) RemoveLogs(uid types.UID) error {
	err := removePodLogs(d.ownLogs(), uid)
	if d.AllLogs() != d.ownLogs() {
		err = errors.Join(err, removePodLogs(d.AllLogs(), uid))
	}
	return err
}

func removePodLogs(root string, uid types.UID) error {
	entries, err := os.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		if strings.HasSuffix(entry.Name(), "_"+string(uid)) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(root, entry.Name())))
		}
	}
	return err
}
