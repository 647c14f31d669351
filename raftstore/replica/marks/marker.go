package marks

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"maps"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/durable"
)

const fileMode = 0o600

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// ErrCorrupt: stored bytes are not what was written.
var ErrCorrupt = errors.New("stored data is corrupt")

// The states of a data directory, as its marker tells them.
const (
	// Held: the log exists; losing it must be noticed.
	Held = ""
	// Fresh: a founder that has told its peers its nonce, and never voted.
	Fresh = "fresh"
	// Founding: the founding is decided, the first log entry may be missing.
	Founding = "founding"
	// Joining: a member id never used before; the log may be empty.
	Joining = "joining"
	// Damaged: what is stored must not be used, and is still in its place.
	Damaged = "damaged"
	// Restored: a backup was restored here, and the servers that restored it have not
	// begun its life yet. With a Life the data are here, else they are at another.
	Restored = "restored"
	// Discarding: what is stored is being set aside; ServerID is the next id.
	Discarding = "discarding"
)

// Marker says that a server holds state. It is stored apart from the log, because an emptied log looks exactly
// like the log of a server that never voted.
type Marker struct {
	// ServerID is the member id; name or name+xxxxxxxx.
	ServerID  string `json:"serverID"`
	ClusterID string `json:"clusterID,omitempty"`
	// State is one of the constants above.
	State string `json:"state,omitempty"`
	// Nonce is that of a founder's empty data directory: made once, gone with it.
	Nonce string `json:"nonce,omitempty"`
	// Founders are the nonces of the servers that founded the cluster together with this one, by name.
	Founders map[string]string `json:"founders,omitempty"`
	// Life is the cluster's life that the data belongs to, "" while it has no name.
	Life string `json:"life,omitempty"`
	// Backup tells, while Restored, which backup that was.
	Backup   string `json:"backup,omitempty"`
	Checksum uint32 `json:"checksum"`
}

func (m *Marker) sum() uint32 {
	text := fmt.Appendf(nil, "%q %q", m.ServerID, m.ClusterID)
	if m.State != Held || m.Nonce != "" || len(m.Founders) > 0 {
		text = fmt.Appendf(text, " %q %q %q", m.State, m.Nonce, m.Founders) // maps print sorted
	}
	if m.Life != "" || m.Backup != "" {
		text = fmt.Appendf(text, " %q %q", m.Life, m.Backup)
	}
	return crc32.Checksum(text, castagnoli)
}

// With returns a copy in another state.
func (m *Marker) With(state string) *Marker {
	next := *m
	next.State, next.Founders = state, maps.Clone(m.Founders)
	return &next
}

// Uncounted returns a copy of a founder that founds nothing yet, with the same nonce.
func (m *Marker) Uncounted() *Marker {
	next := m.With(Fresh)
	next.Founders = nil
	return next
}

// Store keeps the marker and the watermark. Load returns nil if there is no marker,
// LoadWatermark an empty one; what was saved survives a power cut.
type Store interface {
	Load() (*Marker, error)
	Save(*Marker) error
	LoadWatermark() (Watermark, error)
	SaveWatermark(Watermark) error
}

// Dir keeps them as two files in a directory, which exists.
type Dir string

var _ Store = Dir("")

func (d Dir) marker() string { return filepath.Join(string(d), "marker.json") }

// Load implements Store. A changed file gives an error that wraps ErrCorrupt.
func (d Dir) Load() (*Marker, error) {
	data, err := os.ReadFile(d.marker())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the state marker: %w", err)
	}
	var m Marker
	if err := json.Unmarshal(data, &m); err != nil || m.Checksum != m.sum() {
		return nil, fmt.Errorf("%w: state marker %s", ErrCorrupt, d.marker())
	}
	return &m, nil
}

// Save implements Store.
func (d Dir) Save(m *Marker) error {
	m.Checksum = m.sum()
	data, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(d.marker(), append(data, '\n'), fileMode); err != nil {
		return fmt.Errorf("writing the state marker: %w", err)
	}
	return nil
}
