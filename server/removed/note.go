package removed

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// noteName is where the note lies below a data directory: what moves the data of the store away moves it too.
const noteName = "state-marker/removed"

// Note writes down that the server whose data these are was removed. It survives a power cut.
func Note(dataDir string) error {
	path := filepath.Join(dataDir, noteName)
	if err := durable.WriteFile(path, []byte("This server was removed from its cluster.\n"), 0o600); err != nil {
		return fmt.Errorf("noting that this server was removed: %w", err)
	}
	return nil
}

// Noted reports whether there is a note.
func Noted(dataDir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dataDir, noteName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// Forget removes the note, if there is one: the data begin a life of their own.
func Forget(dataDir string) error {
	if err := os.Remove(filepath.Join(dataDir, noteName)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
