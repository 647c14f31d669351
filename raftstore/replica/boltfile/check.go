package boltfile

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"time"
)

const (
	// lockWait is how long to wait for another process to let go of the file,
	// lockPoll how often it is asked.
	lockWait = time.Second
	lockPoll = 20 * time.Millisecond
	// depthMax bounds the tree: 2 keys a page would reach 2^32 pages.
	depthMax = 32
)

// ErrDamaged: a number in the file is not what it must be. ErrInUse: a process has
// the database open.
var (
	ErrDamaged = errors.New("file is damaged")
	ErrInUse   = errors.New("another process holds it")
)

// Check verifies the structure of the database's file before the database maps it. Values
// are not its concern: they carry checksums. stableKeys are those that may lie beside the
// log: a key that changed on disk would look like one never written, a vote forgotten.
// A file that does not exist or is empty passes. Errors wrap ErrDamaged or ErrInUse.
func Check(path string, stableKeys ...string) error {
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if err := lockShared(file); err != nil {
		return err
	}
	if info, err := file.Stat(); err != nil || info.Size() == 0 {
		return err
	}
	if err := checkPages(file, stableKeys); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// lockShared waits until no process has the database open. Closing the file gives
// the lock back.
func lockShared(file *os.File) error {
	for deadline := time.Now().Add(lockWait); ; time.Sleep(lockPoll) {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			return err
		}
		if time.Now().After(deadline) {
			return ErrInUse
		}
	}
}

// checkPages walks the whole tree: every page is used once or free, every key in
// its place.
func checkPages(file *os.File, stableKeys []string) error {
	f, err := openPages(file)
	if err != nil {
		return err
	}
	f.used, f.stableKeys = make([]bool, f.pages), stableKeys
	if err := f.claimFree(); err != nil {
		return fmt.Errorf("free list: %w", err)
	}
	buckets := map[string]bool{}
	err = f.walk(f.root, func(e element) error {
		buckets[string(e.key)] = true
		return f.bucket(e)
	})
	if err != nil {
		return err
	}
	if len(buckets) > 0 && !(len(buckets) == 2 && buckets["logs"] && buckets["conf"]) {
		return fmt.Errorf("buckets %v", buckets)
	}
	if i := slices.Index(f.used[2:], false); i >= 0 && f.freelist != noFreelist {
		return fmt.Errorf("page %d is lost", i+2)
	}
	return nil
}

// claimFree claims the pages of the free list and those in it.
func (f *pages) claimFree() error {
	if f.freelist == noFreelist {
		return nil
	}
	p, err := f.page(f.freelist)
	if err != nil {
		return err
	}
	if p.flags != freelistPage {
		return fmt.Errorf("page %d has the flags %#x", p.id, p.flags)
	}
	ids, count := p.body[pageHeadBytes:], uint64(p.count)
	if p.count == manyFree && len(ids) >= 8 {
		count, ids = order.Uint64(ids), ids[8:]
	}
	if count > uint64(len(ids)/8) {
		return fmt.Errorf("has %d pages", count)
	}
	for ; count > 0; count-- {
		if err := f.claim(order.Uint64(ids), 1); err != nil {
			return err
		}
		ids = ids[8:]
	}
	return nil
}

// walk visits the elements of the leaves below a page, in order.
func (f *pages) walk(id uint64, visit func(element) error) error {
	return f.walkRange(id, keyRange{}, 0, visit)
}

// keyRange is what a branch says of the keys below it; nil is open.
type keyRange struct{ from, to []byte }

func (r keyRange) holds(key []byte) bool {
	return bytes.Compare(key, r.from) >= 0 && (r.to == nil || bytes.Compare(key, r.to) < 0)
}

func (f *pages) walkRange(id uint64, within keyRange, depth int, visit func(element) error) error {
	p, err := f.page(id)
	if err != nil {
		return err
	}
	elements, err := p.ordered(within)
	switch {
	case err != nil:
		return err
	case depth > depthMax, depth > 0 && len(elements) == 0, p.flags == branchPage && len(elements) == 0:
		return fmt.Errorf("page %d has no place in the tree", id)
	case p.flags == leafPage:
		return visitAll(elements, visit)
	}
	for i, e := range elements {
		below := keyRange{from: e.key, to: within.to}
		if i+1 < len(elements) {
			below.to = elements[i+1].key
		}
		if err := f.walkRange(e.child, below, depth+1, visit); err != nil {
			return err
		}
	}
	return nil
}

func visitAll(elements []element, visit func(element) error) error {
	for _, e := range elements {
		if err := visit(e); err != nil {
			return err
		}
	}
	return nil
}

// ordered reads the elements of a page whose keys ascend and lie in the range.
func (p *page) ordered(within keyRange) ([]element, error) {
	elements, err := p.elements()
	if err != nil {
		return nil, err
	}
	for i, e := range elements {
		if !within.holds(e.key) || i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0 {
			return nil, fmt.Errorf("page %d: key %x is out of order", p.id, e.key)
		}
	}
	return elements, nil
}

// bucket walks one of the two tables: the log, and what is kept beside it.
func (f *pages) bucket(e element) error {
	if e.flags != bucketElement || len(e.value) < bucketHeadBytes {
		return fmt.Errorf("%q is no bucket", e.key)
	}
	visit := f.checkStableKey
	if string(e.key) == "logs" {
		visit = (&indexCheck{}).next
	}
	if root := order.Uint64(e.value); root != 0 {
		return f.walk(root, visit)
	}
	p, err := parsePage(e.value[bucketHeadBytes:], 0)
	if err != nil {
		return err
	}
	if p.flags != leafPage {
		return fmt.Errorf("%q has the flags %#x", e.key, p.flags)
	}
	elements, err := p.ordered(keyRange{})
	if err != nil {
		return err
	}
	return visitAll(elements, visit)
}

func (f *pages) checkStableKey(e element) error {
	if e.flags != 0 || !slices.Contains(f.stableKeys, string(e.key)) {
		return fmt.Errorf("stable key %q", e.key)
	}
	return nil
}

// indexCheck verifies that the log's indexes follow each other.
type indexCheck struct{ last uint64 }

func (c *indexCheck) next(e element) error {
	if e.flags != 0 || len(e.key) != 8 {
		return fmt.Errorf("log key %x", e.key)
	}
	index := binary.BigEndian.Uint64(e.key)
	if c.last != 0 && index != c.last+1 {
		return fmt.Errorf("log entry %d follows %d", index, c.last)
	}
	c.last = index
	return nil
}
