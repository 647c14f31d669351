package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

// marker says that a server holds state. It lives apart from the log, because an
// emptied log looks exactly like that of a server that never voted.
type marker struct {
	ServerID  string `json:"serverID"`
	ClusterID string `json:"clusterID,omitempty"`
	Checksum  uint32 `json:"checksum"`
}

func (m *marker) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%q %q", m.ServerID, m.ClusterID), castagnoli)
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

func (r *Replica) saveMarker() error {
	return r.cfg.Storage.marker.save(&marker{ServerID: r.cfg.ID, ClusterID: r.cfg.ClusterID})
}

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
