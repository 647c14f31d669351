package boltfile

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The pages of the database's file, format 2 of bbolt. A page is its number, flags,
// how many elements it has and how many pages follow that belong to it; then the
// elements' heads; then, without gaps, their keys and values. Pages have no
// checksum, but this order has one right form for every number in it.
const (
	magic   = 0xED0CDAED
	version = 2

	pageHeadBytes    = 16
	elementHeadBytes = 16
	bucketHeadBytes  = 16
	metaBytes        = 64
	metaSummedBytes  = 56

	branchPage   = 0x01
	leafPage     = 0x02
	freelistPage = 0x10

	bucketElement = 0x01
	// manyFree is the count of a free list that begins with its real length.
	manyFree = 0xFFFF
	// noFreelist is the free list's page when it is not kept in the file.
	noFreelist = ^uint64(0)
	// pageBytesMax is the largest page size of any system.
	pageBytesMax = 64 << 10
)

var order = binary.NativeEndian

// meta is one of the two roots of the file; writes alternate between them.
type meta struct {
	pageBytes int64
	root      uint64
	freelist  uint64
	// pages is how many the file has, at least.
	pages uint64
	txid  uint64
}

// parseMeta reads a meta page that begins at b.
func parseMeta(b []byte) (meta, error) {
	b = b[pageHeadBytes : pageHeadBytes+metaBytes]
	sum := fnv.New64a()
	sum.Write(b[:metaSummedBytes])
	m := meta{
		pageBytes: int64(order.Uint32(b[8:])), root: order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]), pages: order.Uint64(b[40:]), txid: order.Uint64(b[48:]),
	}
	switch {
	case order.Uint32(b) != magic || order.Uint32(b[4:]) != version:
		return m, errors.New("is no root of a database")
	case order.Uint64(b[metaSummedBytes:]) != sum.Sum64():
		return m, errors.New("has a wrong checksum")
	case m.pageBytes < 512 || m.pageBytes > pageBytesMax:
		return m, fmt.Errorf("has pages of %d bytes", m.pageBytes)
	}
	return m, nil
}

// page is a page with those that belong to it. What it points into is valid
// until the next is read.
type page struct {
	id    uint64
	flags uint16
	count int
	body  []byte
}

// element is a key with a value, or with the page below it.
type element struct {
	flags      uint32
	key, value []byte
	child      uint64
}

// pages reads pages and keeps account of which were read.
type pages struct {
	file io.ReaderAt
	meta
	// stableKeys are the keys that may lie beside the log.
	stableKeys []string
	// used tells which pages belong to somebody: each to one.
	used []bool
}

// openPages reads both roots. The older one stays whole while the newer is
// written; a root that is not whole would make the database take the other, and
// forget the last write.
func openPages(file *os.File) (*pages, error) {
	head := make([]byte, pageHeadBytes+metaBytes)
	if _, err := file.ReadAt(head, 0); err != nil {
		return nil, fmt.Errorf("root 0: %w", err)
	}
	first, err := parseMeta(head)
	if err != nil {
		return nil, fmt.Errorf("root 0 %w", err)
	}
	if _, err := file.ReadAt(head, first.pageBytes); err != nil {
		return nil, fmt.Errorf("root 1: %w", err)
	}
	second, err := parseMeta(head)
	if err != nil {
		return nil, fmt.Errorf("root 1 %w", err)
	}
	if second.txid < first.txid {
		first, second = second, first
	}
	if second.txid != first.txid+1 || second.pageBytes != first.pageBytes {
		return nil, fmt.Errorf("roots of writes %d and %d", first.txid, second.txid)
	}
	return &pages{file: file, meta: second}, second.fits(file)
}

// fits reports whether the file has all pages that the root speaks of.
func (m *meta) fits(file *os.File) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if held := uint64(info.Size() / m.pageBytes); held < m.pages {
		return fmt.Errorf("%d pages of %d", held, m.pages)
	}
	return nil
}

// claim notes that pages belong to somebody.
func (f *pages) claim(id, n uint64) error {
	if id < 2 || id >= f.pages || n > f.pages-id {
		return fmt.Errorf("page %d+%d of %d", id, n, f.pages)
	}
	for i := id; i < id+n; i++ {
		if f.used[i] {
			return fmt.Errorf("page %d is used twice", i)
		}
		f.used[i] = true
	}
	return nil
}

// page reads and claims a page.
func (f *pages) page(id uint64) (page, error) {
	if id < 2 || id >= f.pages {
		return page{}, fmt.Errorf("page %d of %d", id, f.pages)
	}
	data := make([]byte, f.pageBytes)
	if _, err := f.file.ReadAt(data, int64(id)*f.pageBytes); err != nil {
		return page{}, err
	}
	extra := uint64(order.Uint32(data[12:]))
	if err := f.claim(id, 1+extra); err != nil {
		return page{}, err
	}
	if extra > 0 {
		data = append(data, make([]byte, int64(extra)*f.pageBytes)...)
		if _, err := f.file.ReadAt(data[f.pageBytes:], int64(id+1)*f.pageBytes); err != nil {
			return page{}, err
		}
	}
	return parsePage(data, id)
}

// parsePage reads a page's head; an inline one has the number 0.
func parsePage(data []byte, id uint64) (page, error) {
	if len(data) < pageHeadBytes {
		return page{}, fmt.Errorf("page of %d bytes", len(data))
	}
	p := page{id: order.Uint64(data), flags: order.Uint16(data[8:]), count: int(order.Uint16(data[10:])), body: data}
	if p.id != id {
		return p, fmt.Errorf("page %d says that it is %d", id, p.id)
	}
	return p, nil
}

// elements reads a branch or a leaf. Data follow the heads without gaps, so a
// changed count, place or length does not fit.
func (p *page) elements() ([]element, error) {
	if p.flags != branchPage && p.flags != leafPage {
		return nil, fmt.Errorf("page %d has the flags %#x", p.id, p.flags)
	}
	at := pageHeadBytes + p.count*elementHeadBytes
	if at > len(p.body) {
		return nil, fmt.Errorf("page %d has %d elements", p.id, p.count)
	}
	if p.count == 0 && !p.blank() {
		return nil, fmt.Errorf("page %d has lost its elements", p.id)
	}
	elements := make([]element, p.count)
	for i := range elements {
		head := pageHeadBytes + i*elementHeadBytes
		n, err := elements[i].parse(p, head, at)
		if err != nil {
			return nil, fmt.Errorf("page %d, element %d: %w", p.id, i, err)
		}
		at += n
	}
	return elements, nil
}

// blank reports whether there is no element behind the head of the page.
func (p *page) blank() bool {
	for _, b := range p.body[pageHeadBytes:min(len(p.body), pageHeadBytes+elementHeadBytes)] {
		if b != 0 {
			return false
		}
	}
	return true
}

// parse reads the element whose head is at head and whose data must be at at, and
// returns how long they are.
func (e *element) parse(p *page, head, at int) (int, error) {
	b := p.body[head : head+elementHeadBytes]
	var place, keyBytes, valueBytes uint64
	if p.flags == branchPage {
		place, keyBytes, e.child = uint64(order.Uint32(b)), uint64(order.Uint32(b[4:])), order.Uint64(b[8:])
	} else {
		e.flags, place = order.Uint32(b), uint64(order.Uint32(b[4:]))
		keyBytes, valueBytes = uint64(order.Uint32(b[8:])), uint64(order.Uint32(b[12:]))
	}
	size := keyBytes + valueBytes
	if place+uint64(head) != uint64(at) || keyBytes == 0 || size > uint64(len(p.body)-at) {
		return 0, errors.New("is out of place")
	}
	e.key, e.value = p.body[at:at+int(keyBytes)], p.body[at+int(keyBytes):at+int(size)]
	return int(size), nil
}
