package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/bbolt"
)

const stableKey = "CurrentTerm"

// database makes a file with entries 1 to 400, of which the first 200 were deleted, and one stable key; change writes more into it.
func database(t *testing.T, options bbolt.Options, change func(tx *bbolt.Tx) error) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "db")
	options.PageSize = pageSizeOfSeeds
	db, err := bbolt.Open(path, 0o600, &options)
	if err != nil {
		t.Fatal(err)
	}
	for _, write := range []func(*bbolt.Tx) error{fill, deleteFirst, change} {
		if err := db.Update(write); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func fill(tx *bbolt.Tx) error {
	logs, err := tx.CreateBucket([]byte("logs"))
	if err != nil {
		return err
	}
	for i := range uint64(400) {
		if err := logs.Put(logKey(i+1), make([]byte, 100)); err != nil {
			return err
		}
	}
	conf, err := tx.CreateBucket([]byte("conf"))
	return errors.Join(err, conf.Put([]byte(stableKey), []byte("value")))
}

func deleteFirst(tx *bbolt.Tx) error {
	for i := range uint64(200) {
		if err := tx.Bucket([]byte("logs")).Delete(logKey(i + 1)); err != nil {
			return err
		}
	}
	return nil
}

func unchanged(*bbolt.Tx) error { return nil }

func logKey(index uint64) []byte { return binary.BigEndian.AppendUint64(nil, index) }

func TestWholeFilesAreWhole(t *testing.T) {
	empty := filepath.Join(t.TempDir(), "empty")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{
		"none":                 filepath.Join(t.TempDir(), "none"),
		"an empty one":         empty,
		"with a free list":     database(t, bbolt.Options{}, unchanged),
		"without one":          database(t, bbolt.Options{NoFreelistSync: true}, unchanged),
		"without entries":      database(t, bbolt.Options{}, func(tx *bbolt.Tx) error { return clear(tx, "logs") }),
		"without a stable key": database(t, bbolt.Options{}, func(tx *bbolt.Tx) error { return clear(tx, "conf") }),
		"with one entry":       database(t, bbolt.Options{}, func(tx *bbolt.Tx) error { return onlyEntry(tx, 500) }),
		"with a large entry": database(t, bbolt.Options{}, func(tx *bbolt.Tx) error {
			return tx.Bucket([]byte("logs")).Put(logKey(401), make([]byte, 5*pageSizeOfSeeds))
		}),
		"with nothing in it": database(t, bbolt.Options{}, func(tx *bbolt.Tx) error {
			return errors.Join(tx.DeleteBucket([]byte("logs")), tx.DeleteBucket([]byte("conf")))
		}),
	} {
		if err := Check(path, stableKey); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// clear empties a bucket.
func clear(tx *bbolt.Tx, bucket string) error {
	err := tx.DeleteBucket([]byte(bucket))
	_, created := tx.CreateBucket([]byte(bucket))
	return errors.Join(err, created)
}

func onlyEntry(tx *bbolt.Tx, index uint64) error {
	return errors.Join(clear(tx, "logs"), tx.Bucket([]byte("logs")).Put(logKey(index), []byte("value")))
}

// TestWhatDoesNotBelongThereIsDamage: pages are whole, and what is in them nobody wrote.
func TestWhatDoesNotBelongThereIsDamage(t *testing.T) {
	for name, change := range map[string]func(tx *bbolt.Tx) error{
		"a gap in the log":    func(tx *bbolt.Tx) error { return tx.Bucket([]byte("logs")).Delete(logKey(300)) },
		"a longer key":        func(tx *bbolt.Tx) error { return tx.Bucket([]byte("logs")).Put(append(logKey(400), 1), nil) },
		"a bucket in the log": func(tx *bbolt.Tx) error { _, err := tx.Bucket([]byte("logs")).CreateBucket(logKey(401)); return err },
		"another stable key":  func(tx *bbolt.Tx) error { return tx.Bucket([]byte("conf")).Put([]byte("CurrentTern"), nil) },
		"a bucket as stable key": func(tx *bbolt.Tx) error {
			_, err := tx.Bucket([]byte("conf")).CreateBucket([]byte("LastVoteTerm"))
			return err
		},
		"a bucket too few":  func(tx *bbolt.Tx) error { return tx.DeleteBucket([]byte("conf")) },
		"a bucket too many": func(tx *bbolt.Tx) error { _, err := tx.CreateBucket([]byte("more")); return err },
		"a bucket of another name": func(tx *bbolt.Tx) error {
			_, err := tx.CreateBucket([]byte("cone"))
			return errors.Join(err, tx.DeleteBucket([]byte("conf")))
		},
	} {
		if err := Check(database(t, bbolt.Options{}, change), stableKey, "LastVoteTerm"); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTheFreeListHasEachPageOnce: one that it lacks is lost for good, and one that it has twice is given to two.
func TestTheFreeListHasEachPageOnce(t *testing.T) {
	for name, harm := range map[string]func(list []byte){
		"a page is lost":              func(list []byte) { order.PutUint16(list[10:], order.Uint16(list[10:])-1) },
		"a page is there twice":       func(list []byte) { copy(list[pageHeadBytes:pageHeadBytes+8], list[pageHeadBytes+8:]) },
		"it is longer than it can be": func(list []byte) { order.PutUint16(list[10:], manyFree-1) },
		"it is another page":          func(list []byte) { order.PutUint16(list[8:], leafPage) },
		"a page too many, beyond the end": func(list []byte) {
			n := order.Uint16(list[10:])
			order.PutUint16(list[10:], n+1)
			order.PutUint64(list[pageHeadBytes+8*int(n):], 1<<40)
		},
		"a page beyond the end": func(list []byte) { order.PutUint64(list[pageHeadBytes:], 1<<40) },
	} {
		path := database(t, bbolt.Options{}, unchanged)
		changePage(t, path, func(f *pages) uint64 { return f.freelist }, harm)
		if err := Check(path, stableKey); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestALongFreeListHasItsLengthInside: from 65,535 pages on, and nothing says that a shorter one may not.
func TestALongFreeListHasItsLengthInside(t *testing.T) {
	path := database(t, bbolt.Options{}, unchanged)
	changePage(t, path, func(f *pages) uint64 { return f.freelist }, func(list []byte) {
		n := order.Uint16(list[10:])
		copy(list[pageHeadBytes+8:], bytes.Clone(list[pageHeadBytes:pageHeadBytes+8*int(n)]))
		order.PutUint16(list[10:], manyFree)
		order.PutUint64(list[pageHeadBytes:], uint64(n))
	})
	if err := Check(path, stableKey); err != nil {
		t.Error(err)
	}
}

// TestAnEmptyLeafIsDamage: the log would begin later than it did.
func TestAnEmptyLeafIsDamage(t *testing.T) {
	path := database(t, bbolt.Options{}, unchanged)
	changePage(t, path, firstLeafOfLog, func(leaf []byte) { order.PutUint16(leaf[10:], 0) })
	if err := Check(path, stableKey); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestAPageSaysWhichItIs: one that was written to another place is found there.
func TestAPageSaysWhichItIs(t *testing.T) {
	path := database(t, bbolt.Options{}, unchanged)
	changePage(t, path, firstLeafOfLog, func(leaf []byte) { order.PutUint64(leaf, order.Uint64(leaf)+1) })
	if err := Check(path, stableKey); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// TestAFileThatWasCutIsDamage, whatever the pages held that are gone.
func TestAFileThatWasCutIsDamage(t *testing.T) {
	path := database(t, bbolt.Options{NoFreelistSync: true}, func(tx *bbolt.Tx) error { return onlyEntry(tx, 500) })
	if err := os.Truncate(path, 40*pageSizeOfSeeds); err != nil {
		t.Fatal(err)
	}
	if err := Check(path, stableKey); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}

// firstLeafOfLog is the leftmost page of the bucket of entries.
func firstLeafOfLog(f *pages) (id uint64) {
	f.used = make([]bool, f.pages)
	_ = f.walk(f.root, func(e element) error {
		if string(e.key) == "logs" {
			id = order.Uint64(e.value)
		}
		return nil
	})
	for {
		p, err := f.page(id)
		if err != nil || p.flags != branchPage {
			return id
		}
		elements, err := p.elements()
		if err != nil {
			return 0
		}
		id = elements[0].child
	}
}

// TestTheRootHasBucketsOnly: the first of its two elements is the bucket of stable keys, so small that it lies in its value.
func TestTheRootHasBucketsOnly(t *testing.T) {
	for name, harm := range map[string]func(page []byte){
		"a key instead of a bucket":  func(page []byte) { order.PutUint32(page[pageHeadBytes:], 0) },
		"an inner page of no leaves": func(page []byte) { order.PutUint16(valueOf(page)[bucketHeadBytes+8:], branchPage) },
		"elements that are not there": func(page []byte) {
			order.PutUint16(valueOf(page)[bucketHeadBytes+10:], 2)
		},
	} {
		path := database(t, bbolt.Options{}, unchanged)
		changePage(t, path, func(f *pages) uint64 { return f.root }, harm)
		if err := Check(path, stableKey); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// valueOf is the value of a leaf's first element.
func valueOf(page []byte) []byte {
	head := page[pageHeadBytes:]
	at, keyBytes := order.Uint32(head[4:]), order.Uint32(head[8:])
	return head[at+keyBytes:]
}

// changePage changes one page of the file in its place.
func changePage(t *testing.T, path string, which func(*pages) uint64, harm func([]byte)) {
	t.Helper()
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f, err := openPages(file)
	if err != nil {
		t.Fatal(err)
	}
	at := int64(which(f)) * f.pageBytes
	page := make([]byte, f.pageBytes)
	if _, err := file.ReadAt(page, at); err != nil {
		t.Fatal(err)
	}
	harm(page)
	if _, err := file.WriteAt(page, at); err != nil {
		t.Fatal(err)
	}
}
