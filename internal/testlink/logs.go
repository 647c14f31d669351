package testlink

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	logSuffix = ".log"
	// logsKept is how many logs of servers of one binary stay: a test that lost its server names its log.
	logsKept = 5
	// staleAge is how long files of a binary stay that has no server any more.
	staleAge = 7 * 24 * time.Hour
)

// logOf is the log of the server that is this process. Where the process is not known, it is the newest log.
func (s server) logOf(pid int) string {
	named := fmt.Sprintf("%s-%d%s", s.path, pid, logSuffix)
	if all := s.logs(); pid == 0 && len(all) > 0 {
		return all[len(all)-1]
	}
	return named
}

// logs are those of the binary's servers, the oldest first.
func (s server) logs() []string {
	all, _ := filepath.Glob(s.path + "-*" + logSuffix) // the pattern is well formed
	slices.SortFunc(all, func(a, b string) int { return changed(a).Compare(changed(b)) })
	return all
}

// dropLogs makes room for another log.
func (s server) dropLogs() {
	all := s.logs()
	for _, path := range all[:max(0, len(all)-logsKept+1)] {
		_ = os.Remove(path)
	}
}

// changed is when the file was written last, the zero time if it is not there.
func changed(path string) time.Time {
	info, err := os.Lstat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// tidy removes what binaries left in the folder that have had no server for a week. What cannot be removed stays: no test needs it.
func tidy(folder string, now time.Time) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return
	}
	newest := map[string]time.Time{}
	for _, entry := range entries {
		key := entry.Name()[:min(len(entry.Name()), keyLength)]
		path := filepath.Join(folder, entry.Name())
		switch {
		case strings.HasPrefix(entry.Name(), memoryPrefix):
			if now.Sub(changed(path)) > staleAge {
				_ = os.Remove(path)
			}
		case isKey(key):
			if at := changed(path); at.After(newest[key]) {
				newest[key] = at
			}
		}
	}
	for key, at := range newest {
		if now.Sub(at) > staleAge {
			serverIn(folder, key, "").clear()
		}
	}
}

// clear removes the files of a binary without a server. Nobody can start one meanwhile.
func (s server) clear() {
	unlock, err := tryLock(s.lock)
	if err != nil {
		return
	}
	defer unlock()
	if conn, err := s.dial(); err == nil {
		_ = conn.Close()
		return
	}
	var errs []error
	for _, path := range append(s.logs(), s.socket, s.socket+".lock") {
		if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
			errs = append(errs, err)
		}
	}
	if errors.Join(errs...) == nil {
		_ = os.Remove(s.lock)
	}
}
