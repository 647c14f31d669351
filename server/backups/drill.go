package backups

import (
	"cmp"
	"errors"
	"fmt"
	"io"

	"github.com/setpoint-io/setpoint/raftstore/backup"
)

// drill restores, into memory of its own, the archive that is written to it.
type drill struct {
	*io.PipeWriter
	loaded chan loaded
}

// loaded is how that went.
type loaded struct {
	report backup.Report
	err    error
}

var errTooMuch = errors.New("bytes behind the archive")

func newDrill() *drill {
	in, out := io.Pipe()
	d := &drill{out, make(chan loaded, 1)}
	go func() {
		var l loaded
		_, l.report, l.err = backup.Load(in)
		if l.err != nil {
			l.err = fmt.Errorf("what is written cannot be restored: %w", l.err)
		}
		_ = in.CloseWithError(cmp.Or(l.err, errTooMuch)) // the writer is not kept waiting
		d.loaded <- l
	}()
	return d
}

// end says how the drill went when the writing has ended, with the writer's own error if it had one.
func (d *drill) end(written error) (backup.Report, error) {
	_ = d.CloseWithError(written)
	l := <-d.loaded
	if written != nil {
		return l.report, written // the drill's own error, if that is what ended it
	}
	return l.report, l.err
}
