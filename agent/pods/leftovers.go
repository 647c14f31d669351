package pods

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/wait"
)

// removeLeftovers removes the logs and volumes of pods that neither the API nor the runtime knows: a machine that starts anew has no
// containers, but what CSI drivers staged for pods that were deleted meanwhile is to be taken back. It is called after
// adoptOrphans, each pod waits for its own drivers only.
func (m *Manager) removeLeftovers(ctx context.Context) {
	m.removeLeftLogs()
	found, err := os.ReadDir(m.Dirs.Pods())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		m.Logger.Warn("cannot look for what is left of pods", "err", err)
	}
	for _, entry := range found {
		uid := types.UID(entry.Name())
		if !entry.IsDir() || m.has(uid) {
			continue
		}
		m.Logger.Info("removing the files of a pod that nobody knows", "uid", string(uid))
		m.children.Go(func() { m.removeLeftover(ctx, uid) })
	}
}

// removeLeftLogs removes logs in the data directory of pods that nobody knows, of which nothing else may be left.
func (m *Manager) removeLeftLogs() {
	uids, err := m.Dirs.OwnLogs()
	for _, uid := range uids {
		if !m.has(uid) {
			err = errors.Join(err, m.Dirs.RemoveLogs(uid))
		}
	}
	if err != nil {
		m.Logger.Warn("cannot remove logs of pods that nobody knows", "err", err)
	}
}

func (m *Manager) has(uid types.UID) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workers[uid] != nil
}

func (m *Manager) removeLeftover(ctx context.Context, uid types.UID) {
	for pause := startRetryMin; ; pause = min(2*pause, startRetryMax) {
		err := errors.Join(m.Dirs.RemoveLogs(uid), m.Volumes.UnmountUnknown(ctx, uid))
		if err == nil {
			m.Users.Free(uid)
			return
		}
		m.Logger.Warn("cannot remove the files of a pod yet", "uid", string(uid), "err", err)
		if !wait.For(ctx, pause) {
			return
		}
	}
}
