package storage

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The forms in which an item is kept for lists: unlike alone, it carries no type.
const (
	jsonItem     runtime.Identifier = "list item, JSON"
	protobufItem runtime.Identifier = "list item, protobuf"
)

const (
	// listBufferBytes is how much of a list is handed to the connection at once.
	listBufferBytes = 64 << 10
	// listHeldBytes is how much of a protobuf list is held in memory while it is written: 20,000 pods.
	listHeldBytes = 32 << 20
)

// Tags of the protobuf fields that enclose a list's items. Every list of the API has its metadata in field 1 and its items in field 2.
const (
	tagTypeMeta        = 1<<3 | 2
	tagRaw             = 2<<3 | 2
	tagContentEncoding = 3<<3 | 2
	tagContentType     = 4<<3 | 2
	tagItems           = 2<<3 | 2
)

var (
	protobufMagic = []byte("k8s\x00")
	jsonNoItems   = []byte("\"items\":[]")
)

// List is a typed list that is written from the items' own cached bytes: a list costs a fresh header and copying, not encoding.
type List struct {
	// Header is the list with its metadata and no items.
	Header runtime.Object
	Items  []*Cached
	// Full returns the typed list with its items, for encodings that need it.
	Full func() runtime.Object
}

var _ runtime.CacheableObject = (*List)(nil)

// CacheEncode implements runtime.CacheableObject. The form is known by what the
// encoder makes of the empty list; anything but compact JSON and protobuf is left to it.
func (l *List) CacheEncode(_ runtime.Identifier, encode func(runtime.Object, io.Writer) error, w io.Writer) error {
	var header bytes.Buffer
	if err := encode(l.Header.DeepCopyObject(), &header); err != nil {
		return err
	}
	write := l.writeJSON
	switch {
	case bytes.HasPrefix(header.Bytes(), protobufMagic):
		write = l.writeProtobuf
	case !bytes.Contains(header.Bytes(), jsonNoItems):
		return encode(l.Full(), w)
	}
	if _, err := w.Write(header.Next(firstWriteBytes)); err != nil {
		return err
	}
	out := bufio.NewWriterSize(w, listBufferBytes)
	if err := write(header.Bytes(), out); err != nil {
		return err
	}
	return out.Flush()
}

// firstWriteBytes is how little the first write holds: by that upstream's response
// writer knows a stream, and waits for more before it decides about compression.
const firstWriteBytes = 4

// writeJSON writes the header but for its first bytes, with the items in it.
func (l *List) writeJSON(header []byte, w *bufio.Writer) error {
	at := bytes.Index(header, jsonNoItems) + len(jsonNoItems) - 1
	_, _ = w.Write(header[:at]) // a bufio.Writer keeps its error for Flush
	for i, item := range l.Items {
		text, err := item.encoded(jsonItem, func() ([]byte, error) { return json.Marshal(item.object) })
		if err != nil {
			return err
		}
		if i > 0 {
			_ = w.WriteByte(',')
		}
		_, _ = w.Write(text)
	}
	_, _ = w.Write(header[at:])
	return nil
}

// writeProtobuf puts the items into the raw list inside the envelope, which is the header after its magic.
func (l *List) writeProtobuf(header []byte, w *bufio.Writer) error {
	var envelope runtime.Unknown
	if err := envelope.Unmarshal(header); err != nil {
		return fmt.Errorf("envelope of an empty list: %w", err)
	}
	held, itemsBytes, err := l.protobufItems()
	if err != nil {
		return err
	}
	typeMeta, err := envelope.TypeMeta.Marshal()
	if err != nil {
		return err
	}
	writeField(w, tagTypeMeta, typeMeta)
	writeHeader(w, tagRaw, len(envelope.Raw)+itemsBytes)
	_, _ = w.Write(envelope.Raw)
	for _, text := range held {
		writeField(w, tagItems, text)
	}
	for _, item := range l.Items[len(held):] {
		text, err := item.protobuf()
		if err != nil {
			return err
		}
		writeField(w, tagItems, text)
	}
	writeField(w, tagContentEncoding, []byte(envelope.ContentEncoding))
	writeField(w, tagContentType, []byte(envelope.ContentType))
	return nil
}

// protobufItems returns the encodings of the first items, up to listHeldBytes, and what all items take with their headers. A list
// says how long it is before its items: those of a large one that are not kept are only counted first, and encoded when they are written.
func (l *List) protobufItems() (held [][]byte, itemsBytes int, err error) {
	heldBytes := 0
	for _, item := range l.Items {
		size := 0
		if heldBytes < listHeldBytes {
			text, err := item.protobuf()
			if err != nil {
				return nil, 0, err
			}
			held, size = append(held, text), len(text)
			heldBytes += size
		} else if size, err = item.protobufBytes(); err != nil {
			return nil, 0, err
		}
		itemsBytes += tagBytes + protowire.SizeVarint(uint64(size)) + size
	}
	return held, itemsBytes, nil
}

// tagBytes is the length of each of the tags above.
const tagBytes = 1

// writeHeader writes what is before the content of a field, without memory of its own: a list has one for each item.
func writeHeader(w *bufio.Writer, tag byte, size int) {
	_, _ = w.Write(protowire.AppendVarint(append(w.AvailableBuffer(), tag), uint64(size)))
}

func writeField(w *bufio.Writer, tag byte, content []byte) {
	writeHeader(w, tag, len(content))
	_, _ = w.Write(content)
}

// protobufMessage is an object that has a protobuf form.
type protobufMessage interface {
	Marshal() ([]byte, error)
	Size() int
}

func (c *Cached) message() (protobufMessage, error) {
	m, ok := c.object.(protobufMessage)
	if !ok {
		return nil, fmt.Errorf("storage: %T has no protobuf form", c.object)
	}
	return m, nil
}

func (c *Cached) protobuf() ([]byte, error) {
	return c.encoded(protobufItem, func() ([]byte, error) {
		m, err := c.message()
		if err != nil {
			return nil, err
		}
		return m.Marshal()
	})
}

// protobufBytes is how long that encoding is, which is not made to know that.
func (c *Cached) protobufBytes() (int, error) {
	if e := c.encodings.Load().find(protobufItem); e != nil && e.made.Load() {
		return len(e.bytes), e.err
	}
	m, err := c.message()
	if err != nil {
		return 0, err
	}
	return m.Size(), nil
}

// GetObject implements runtime.CacheableObject.
func (l *List) GetObject() runtime.Object { return l.Full() }

// GetListMeta lets meta.ListAccessor read the header.
func (l *List) GetListMeta() metav1.ListInterface {
	return l.Header.(metav1.ListMetaAccessor).GetListMeta()
}

// GetObjectKind implements runtime.Object.
func (l *List) GetObjectKind() schema.ObjectKind { return schema.EmptyObjectKind }

// DeepCopyObject implements runtime.Object.
func (l *List) DeepCopyObject() runtime.Object { return l.Full().DeepCopyObject() }
