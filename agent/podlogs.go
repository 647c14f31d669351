package agent

import (
	"cmp"
	"fmt"
	"os"

	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
)

// Modes of the folders of logs outside of the data directory, upstream's.
const (
	podLogsMode  = 0o750
	logLinksMode = 0o755
)

// dirs are where the node keeps the files of its pods.
func (c *Config) dirs() podconfig.Dirs {
	return podconfig.Dirs{Root: c.DataDir, LogsRoot: c.Settings.PodLogsDir}
}

// openLogs makes the folders of logs that are outside of the data directory, if there are any.
func (c *Config) openLogs() error {
	s := &c.Settings
	if s.PodLogsDir == "" {
		return nil
	}
	s.LogLinksDir = cmp.Or(s.LogLinksDir, logs.MachineLinks)
	for dir, mode := range map[string]os.FileMode{s.PodLogsDir: podLogsMode, s.LogLinksDir: logLinksMode} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return fmt.Errorf("agent: logs of pods: %w", err)
		}
	}
	return nil
}

func (c *Config) logLinks() logs.Links { return logs.Links{Dir: c.Settings.LogLinksDir} }

func (c *Config) logsConfig() logs.Config {
	s := &c.Settings
	return logs.Config{
		Runtime: c.Runtime, SizeMaxBytes: s.LogSizeMaxBytes, FilesMax: s.LogFilesMax, LookEvery: s.LogLookEvery, Logger: c.Logger,
		Links: c.logLinks(), Root: c.dirs().AllLogs(),
	}
}
