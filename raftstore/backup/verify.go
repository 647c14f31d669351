package backup

import (
	"errors"
	"fmt"
	"io"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// Report is what was found in an archive that is whole.
type Report struct {
	Header
	// ArchiveBytes is its length.
	ArchiveBytes int64
	// StateHash is that of the objects, the same on every server that holds them.
	StateHash [command.HashBytes]byte
}

// Check reads an archive to its end and checks it without loading the objects: what
// arrives over a network is checked so before it counts. progress may be nil.
func Check(in io.Reader, progress func(h *Header, objects, bytes int64)) (Report, error) {
	r, err := NewReader(in)
	if err != nil {
		return Report{}, err
	}
	if progress != nil {
		r.OnProgress = func(objects, bytes int64) { progress(&r.Header, objects, bytes) }
	}
	if _, err := io.Copy(io.Discard, r); err != nil {
		return Report{}, err
	}
	return r.report(), nil
}

func (r *Reader) report() Report {
	return Report{Header: r.Header, ArchiveBytes: r.bytesRead, StateHash: r.footer.hash}
}

// Load reads an archive into a state machine of its own and compares what it holds
// with what the archive says. Errors wrap ErrDamaged or ErrNewer.
func Load(in io.Reader) (*state.Root, Report, error) {
	r, err := NewReader(in)
	if err != nil {
		return nil, Report{}, err
	}
	root, err := state.Verify(r)
	if errors.Is(err, state.ErrCorruptSnapshot) {
		return nil, Report{}, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if err != nil {
		return nil, Report{}, err
	}
	h := &r.Header
	switch {
	case !errors.Is(r.ended, io.EOF):
		return nil, Report{}, fmt.Errorf("%w: bytes behind the snapshot", ErrDamaged)
	case root.Hash() != r.footer.hash:
		return nil, Report{}, fmt.Errorf("%w: state hash differs", ErrDamaged)
	case root.Revision != h.Revision, root.Index != h.Index, root.FeatureLevel != h.FeatureLevel,
		root.ClusterID != h.ClusterID, int64(root.Len()) != h.Objects:
		return nil, Report{}, fmt.Errorf("%w: the objects are not those that the header tells of", ErrDamaged)
	}
	return root, r.report(), nil
}
