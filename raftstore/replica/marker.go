package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// The states of a data directory, as its marker tells them.
const (
	// markHeld: the log exists; losing it must be noticed.
	markHeld = ""
	// markFresh: a founder that has told its peers its nonce, and never voted.
	markFresh = "fresh"
	// markFounding: the founding is decided, the first log entry may be missing.
	markFounding = "founding"
	// markJoining: a member id never used before; the log may be empty.
	markJoining = "joining"
	// markDamaged: what is stored must not be used, and is still in its place.
	markDamaged = "damaged"
	// markDiscarding: what is stored is being set aside; ServerID is the next id.
	markDiscarding = "discarding"
)

// marker says that a server holds state. It lives apart from the log, because an
// emptied log looks exactly like that of a server that never voted.
type marker struct {
	// ServerID is the member id; see MemberName.
	ServerID  string `json:"serverID"`
	ClusterID string `json:"clusterID,omitempty"`
	// State is one of the mark constants.
	State string `json:"state,omitempty"`
	// Nonce is that of a founder's empty data directory: made once, gone with it.
	Nonce string `json:"nonce,omitempty"`
	// Founders are the nonces of those with whom this server founded the cluster,
	// by name.
	Founders map[string]string `json:"founders,omitempty"`
	Checksum uint32            `json:"checksum"`
}

func (m *marker) sum() uint32 {
	text := fmt.Appendf(nil, "%q %q", m.ServerID, m.ClusterID)
	if m.State != markHeld || m.Nonce != "" || len(m.Founders) > 0 {
		text = fmt.Appendf(text, " %q %q %q", m.State, m.Nonce, m.Founders) // maps print sorted
	}
	return crc32.Checksum(text, castagnoli)
}

// with returns a copy in another state.
func (m *marker) with(state string) *marker {
	next := *m
	next.State, next.Founders = state, maps.Clone(m.Founders)
	return &next
}

// markerStore keeps the marker: load returns nil if there is none, save returns
// when it would survive a power cut.
type markerStore interface {
	load() (*marker, error)
	save(*marker) error
}

type markerFile struct{ path string }

func (f *markerFile) load() (*marker, error) {
	data, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state marker: %w", err)
	}
	var m marker
	if err := json.Unmarshal(data, &m); err != nil || m.Checksum != m.sum() {
		return nil, fmt.Errorf("%w: state marker %s", ErrCorrupt, f.path)
	}
	return &m, nil
}

func (f *markerFile) save(m *marker) error {
	m.Checksum = m.sum()
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := replaceSynced(f.path, append(data, '\n')); err != nil {
		return fmt.Errorf("writing the state marker: %w", err)
	}
	return nil
}

// replaceSynced puts a file in the place of another, whole or not at all.
func replaceSynced(path string, data []byte) error {
	temporary := path + ".tmp"
	if err := writeSynced(temporary, data); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, fileMode)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Sync()
}

func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}

// saveMark writes a new marker and remembers it.
func (r *Replica) saveMark(m *marker) error {
	if err := r.cfg.Storage.marker.save(m); err != nil {
		return err
	}
	r.remember(m)
	return nil
}

func (r *Replica) remember(m *marker) {
	r.markMu.Lock()
	defer r.markMu.Unlock()
	r.mark = m
}

// marked returns the marker, never nil once Open has returned. It is not to be
// changed.
func (r *Replica) marked() *marker {
	r.markMu.Lock()
	defer r.markMu.Unlock()
	return r.mark
}

// saveHeld says that from now on losing the log must be noticed.
func (r *Replica) saveHeld() error { return r.saveMark(r.marked().with(markHeld)) }

// markOnWrite saves the marker after the first log entry of a new replica and
// before that write is reported done: from then on, losing the log must be noticed.
type markOnWrite struct {
	mu   sync.Mutex
	done bool
	save func() error
}

func (m *markOnWrite) wrote() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.done {
		return nil
	}
	if err := m.save(); err != nil {
		return err
	}
	m.done = true
	return nil
}
