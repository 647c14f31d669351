package podconfig

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/private"
	"github.com/setpoint-io/setpoint/agent/runtime/observed"
)

// ownLogs is where logs are if no other place was chosen.
func (d Dirs) ownLogs() string { return filepath.Join(d.Root, "logs") }

// LogRoots are the directories of the directories of pods' logs: first that of new pods, then those of older ones.
func (d Dirs) LogRoots() (roots []string) {
	for _, root := range slices.Concat([]string{cmp.Or(d.LogsRoot, d.ownLogs()), d.ownLogs()}, d.FormerLogs) {
		if !slices.Contains(roots, root) {
			roots = append(roots, root)
		}
	}
	return roots
}

// Logs is the directory of a pod's logs, named as upstream's. A pod keeps the one that it has.
func (d Dirs) Logs(namespace, name, uid string) string {
	folder, roots := strings.Join([]string{namespace, name, uid}, "_"), d.LogRoots()
	for _, root := range roots[1:] {
		if dir := filepath.Join(root, folder); isThere(dir) && !isThere(filepath.Join(roots[0], folder)) {
			return dir
		}
	}
	return filepath.Join(roots[0], folder)
}

func isThere(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// PodLogs is Logs of pod.
func (d Dirs) PodLogs(pod *corev1.Pod) string {
	return d.Logs(pod.Namespace, pod.Name, string(pod.UID))
}

// LogPath is where the runtime writes, relative to the sandbox's log directory.
func LogPath(container string, attempt int) string {
	return filepath.Join(container, strconv.Itoa(attempt)+".log")
}

// LogFile is where the runtime says that a container's log is, or where it was told to write.
func (d Dirs) LogFile(run *observed.Container) string {
	if filepath.IsAbs(run.LogPath) {
		return run.LogPath
	}
	l := run.Labels
	pod := d.Logs(l[observed.LabelPodNamespace], l[observed.LabelPodName], l[observed.LabelPodUID])
	return filepath.Join(pod, LogPath(run.ContainerName(), run.RestartCount()))
}

// RemoveLogs removes the logs of the pod with a uid, wherever they are.
func (d Dirs) RemoveLogs(uid types.UID) error {
	folders, err := d.LogFolders(uid)
	for _, folder := range folders {
		err = errors.Join(err, os.RemoveAll(folder))
	}
	return err
}

// LogFolders are the folders of that pod's logs.
func (d Dirs) LogFolders(uid types.UID) (folders []string, err error) {
	for _, root := range d.LogRoots() {
		entries, readErr := os.ReadDir(root)
		err = errors.Join(err, ignoreAbsent(readErr))
		for _, entry := range entries {
			if uid != "" && strings.HasSuffix(entry.Name(), "_"+string(uid)) {
				folders = append(folders, filepath.Join(root, entry.Name()))
			}
		}
	}
	return folders, err
}

// OwnLogs are the uids of the pods with logs below Root, where no other node's are.
func (d Dirs) OwnLogs() (uids []types.UID, err error) {
	entries, err := os.ReadDir(d.ownLogs())
	for _, entry := range entries {
		uids = append(uids, types.UID(entry.Name()[strings.LastIndex(entry.Name(), "_")+1:]))
	}
	return uids, ignoreAbsent(err)
}

func ignoreAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// formerLogsFile remembers each LogsRoot that a node has had, one a line.
func formerLogsFile(root string) string { return filepath.Join(root, "log-folders") }

// ReadFormerLogs returns what RememberLogs has noted below a Root.
func ReadFormerLogs(root string) ([]string, error) {
	text, err := os.ReadFile(formerLogsFile(root))
	return slices.DeleteFunc(strings.Split(string(text), "\n"), func(line string) bool { return line == "" }), ignoreAbsent(err)
}

// RememberLogs notes LogsRoot, so that a later agent with another one finds the logs of its pods.
func (d *Dirs) RememberLogs() (err error) {
	if d.FormerLogs, err = ReadFormerLogs(d.Root); err != nil || d.LogsRoot == "" || slices.Contains(d.FormerLogs, d.LogsRoot) {
		return err
	}
	d.FormerLogs = append(d.FormerLogs, d.LogsRoot)
	return private.WriteFile(formerLogsFile(d.Root), []byte(strings.Join(d.FormerLogs, "\n")+"\n"))
}
