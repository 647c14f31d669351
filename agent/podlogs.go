package agent

import (
	"cmp"
	"fmt"
	"os"

	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// podLogsMode is that of the folder of logs outside of the data directory, upstream's.
const podLogsMode = 0o750

// dirs are where the node keeps the files of its pods.
func (a *agent) dirs() podconfig.Dirs {
	return podconfig.Dirs{Root: a.DataDir, LogsRoot: a.Settings.PodLogsDir, FormerLogs: a.formerLogs}
}

// openLogs makes the folder of logs that is outside of the data directory, if there is one, and finds those that were.
func (a *agent) openLogs() error {
	s := &a.Settings
	if s.PodLogsDir != "" {
		s.LogLinksDir = cmp.Or(s.LogLinksDir, logs.MachineLinks)
		if err := os.MkdirAll(s.PodLogsDir, podLogsMode); err != nil {
			return fmt.Errorf("agent: logs of pods: %w", err)
		}
	}
	dirs := a.dirs()
	if err := dirs.RememberLogs(); err != nil {
		return fmt.Errorf("agent: logs of pods: %w", err)
	}
	a.formerLogs = dirs.FormerLogs
	return nil
}

func (a *agent) logLinks() logs.Links { return logs.Links{Dir: a.Settings.LogLinksDir} }

func (a *agent) logsConfig() logs.Config {
	s := &a.Settings
	return logs.Config{
		Runtime: a.Runtime, SizeMaxBytes: s.LogSizeMaxBytes, FilesMax: s.LogFilesMax, LookEvery: s.LogLookEvery, Logger: a.Logger,
		Links: a.logLinks(), Roots: a.dirs().LogRoots(),
	}
}
