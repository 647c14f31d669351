package boltfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

// FuzzCheck: the check itself stands whatever is in the file.
func FuzzCheck(f *testing.F) {
	path := filepath.Join(f.TempDir(), "db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{PageSize: pageSizeOfSeeds})
	if err != nil {
		f.Fatal(err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		bucket, err := tx.CreateBucket([]byte("logs"))
		return errors.Join(err, bucket.Put([]byte{0, 0, 0, 0, 0, 0, 0, 1}, []byte("value")))
	})
	if err := errors.Join(err, db.Close()); err != nil {
		f.Fatal(err)
	}
	seed, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		path := filepath.Join(t.TempDir(), "db")
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := Check(path); err != nil && !errors.Is(err, ErrDamaged) {
			t.Error(err)
		}
	})
}

// pageSizeOfSeeds keeps the seed small.
const pageSizeOfSeeds = 1024
