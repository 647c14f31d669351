package segments

import (
	"errors"
	"os"
)

// disk is what differs between a log and one that a test looks at.
type disk struct {
	sync syncer
	// first is the size of the first segment. Each further one is twice as large as the one before, up to most: a small
	// cluster takes little room.
	first, most int64
}

// next is the size of the segment behind one of a size.
func (d disk) next(bytes int64) int64 { return min(2*bytes, d.most) }

// syncer brings a file to the disk. It is datasync, but for tests that do not cut the power.
type syncer func(*os.File) error

// names brings names that were made, changed or removed in a directory to the disk.
func (s syncer) names(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(s(d), d.Close())
}
