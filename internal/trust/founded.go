package trust

import (
	"os"
	"path/filepath"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

const fileFounded = "founded.json"

// FoundedFile is where a cluster's folder says that the cluster was founded; package raftstore/founded says what is in it.
// Servers that share the folder share the file.
type FoundedFile string

// Founded returns the file of the folder, "" if no folder keeps the material.
func (c *Cluster) Founded() FoundedFile {
	if c.inMemory() {
		return ""
	}
	return FoundedIn(c.dir)
}

// FoundedIn returns the file of a cluster's folder.
func FoundedIn(dir string) FoundedFile {
	return FoundedFile(filepath.Join(dir, folderPKI, fileFounded))
}

// Load returns an error that wraps fs.ErrNotExist before the founding.
func (f FoundedFile) Load() ([]byte, error) { return os.ReadFile(string(f)) }

// Save replaces the file whole or not at all, durably.
func (f FoundedFile) Save(record []byte) error {
	return secretfile.Write(string(f), record, secretfile.Secret)
}

// String is its path.
func (f FoundedFile) String() string { return string(f) }
