package marks

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// Watermark says how far a server's log reached, and its term. It lies apart from
// the log, like the marker: an old copy of the log is whole in itself.
type Watermark struct {
	// ServerID is whose it is: under a new id a server begins anew.
	ServerID string `json:"serverID"`
	// Index was committed, in Term or before.
	Index    uint64 `json:"index"`
	Term     uint64 `json:"term"`
	Checksum uint32 `json:"checksum"`
}

func (w *Watermark) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%q %d %d", w.ServerID, w.Index, w.Term), castagnoli)
}

func (d Dir) watermark() string { return filepath.Join(string(d), "watermark.json") }

// LoadWatermark implements Store. A changed file gives an error that wraps ErrCorrupt.
func (d Dir) LoadWatermark() (w Watermark, err error) {
	data, err := os.ReadFile(d.watermark())
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, fmt.Errorf("reading the watermark: %w", err)
	}
	if err := json.Unmarshal(data, &w); err != nil || w.Checksum != w.sum() {
		return w, fmt.Errorf("%w: watermark %s", ErrCorrupt, d.watermark())
	}
	return w, nil
}

// SaveWatermark implements Store.
func (d Dir) SaveWatermark(w Watermark) error {
	w.Checksum = w.sum()
	data, err := json.Marshal(w)
	if err != nil {
		return err
	}
	if err := durable.WriteFile(d.watermark(), append(data, '\n'), fileMode); err != nil {
		return fmt.Errorf("writing the watermark: %w", err)
	}
	return nil
}

// RemoveWatermark removes the watermark, if there is one.
func (d Dir) RemoveWatermark() error {
	err := os.Remove(d.watermark())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
