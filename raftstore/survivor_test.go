package raftstore_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
)

// lines is a log to look at.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

// with returns the lines that have all of the words.
func (l *lines) with(words ...string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
next:
	for line := range strings.Lines(l.text.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// TestAFreshServerNamesTheSurvivor: two of three lost their data, and the third alone
// cannot lead. Nothing will come of waiting, so those who wait say what to do.
func TestAFreshServerNamesTheSurvivor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lines
		c := raftstoretest.StartCluster(t, 3, func(cfg *raftstore.Config) {
			if cfg.Name == "server-2" {
				cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
			}
		})
		defer c.Close()
		mustPut(t, c.Store(c.Leader()), "/k", "v")
		for i := range 3 {
			c.Crash(i)
		}
		c.Wipe(0)
		c.Wipe(1)
		for i := range 3 {
			c.Restart(i)
		}
		time.Sleep(100 * time.Second)
		if told := log.with("level=WARN", "server-3", "cluster recover"); len(told) < 3 {
			t.Errorf("said %d times in 100 s:\n%s", len(told), log.text.String())
		}
	})
}
