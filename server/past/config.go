package past

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/history"
)

const (
	// RetentionFlag and SizeFlag are how the limits are called.
	RetentionFlag = "history-retention"
	SizeFlag      = "history-maxsize"

	sizeMiBDefault = history.DefaultSizeBytes >> 20
	sizeMiBMin     = 16
	// folder is below the data directory.
	folder = "history"
)

// Config are the flags. The zero value keeps what is usual.
type Config struct {
	// Retention is how long changes are kept, SizeMiB how much they may take.
	Retention time.Duration
	SizeMiB   int
	// set says that the flags were there: no retention means none then.
	set bool
}

// Flags are the flags of a server.
func (c *Config) Flags(flags *pflag.FlagSet) {
	c.set = true
	flags.DurationVar(&c.Retention, RetentionFlag, history.DefaultRetention,
		"how long this server keeps what objects were, for 'setpoint history' and for reads at an exact resourceVersion; 0: it keeps none")
	flags.IntVar(&c.SizeMiB, SizeFlag, sizeMiBDefault, "MiB that history may take on the disk: beyond it, or if the disk has little room, the oldest goes first")
}

var (
	errRetention = errors.New("--" + RetentionFlag + " must be 0, or one minute or more")
	errSize      = errors.New("--" + SizeFlag + " must be 16 or more")
)

// Validate says what is wrong with the flags.
func (c *Config) Validate() error {
	switch {
	case !c.set:
		return nil
	case c.Retention != 0 && c.Retention < time.Minute:
		return errRetention
	case c.SizeMiB < sizeMiBMin:
		return errSize
	}
	return nil
}

// Open opens the history below a data directory; nil if none is kept.
func (c *Config) Open(dataDir string, of history.Config) (*history.History, error) {
	of.Retention, of.SizeBytes = history.DefaultRetention, history.DefaultSizeBytes
	if c.set {
		of.Retention, of.SizeBytes = c.Retention, int64(c.SizeMiB)<<20
	}
	if dataDir == "" {
		return nil, nil
	}
	of.Dir = filepath.Join(dataDir, folder)
	if of.Retention == 0 { // what was kept would stay for ever, Secrets too
		return nil, os.RemoveAll(of.Dir)
	}
	return history.Open(of)
}

// Crowded reports whether a disk has so little room that history gives its own back: twice what must stay free for writes to be taken.
func Crowded(s raftstore.SpaceStatus) bool {
	return s.Low || s.HeadroomBytes > 0 && s.FreeBytes < 2*s.HeadroomBytes
}
