package images

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/vbatts/tar-split/tar/asm"
	"github.com/vbatts/tar-split/tar/storage"
)

// notesBytesMax bounds what is noted of one layer's tar, compressed, and notesEntriesMax how many of its entries: their names are in memory
// meanwhile. Of a layer with more nothing is kept, so it is fetched from the registry everywhere.
const (
	notesBytesMax   = 32 << 20
	notesEntriesMax = 500_000
)

// errNoNotes says that a layer cannot be handed out: it is not here, or it did not come as a tar.
var errNoNotes = fmt.Errorf("%w: no layer that can be handed out", ErrNotFound)

var errChanged = errors.New("a file of the layer is not as it was unpacked")

// tarsDir has a file for each layer that came as a tar: all of the tar but the files' content, which the layer's directory has.
func (s *Store) tarsDir() string { return filepath.Join(s.config.Dir, "tars") }

func (s *Store) tarPath(name string) string { return filepath.Join(s.tarsDir(), name) }

// notes are written while a layer is unpacked, beside it.
type notes struct {
	file *os.File
	zip  *gzip.Writer
	tar  io.ReadCloser
	done <-chan error
	left int64 // of notesBytesMax; negative: they are not kept
	// entries have come, files and what is between them.
	entries int
}

// lenient ends no unpacking for what cannot be noted, such as a name that a tar has twice.
type lenient struct {
	storage.Packer
	notes *notes
}

// AddEntry implements storage.Packer.
func (l *lenient) AddEntry(entry storage.Entry) (int, error) {
	if l.notes.entries++; l.notes.entries > notesEntriesMax {
		l.notes.left = -1
	}
	if l.notes.left < 0 {
		return 0, nil
	}
	n, err := l.Packer.AddEntry(entry)
	if err != nil {
		l.notes.left = -1
	}
	return n, nil
}

// note returns notes of a tar, whose reader gives it unchanged. The caller ends with keep, or with drop.
func (s *Store) note(tar io.Reader) (*notes, error) {
	file, err := os.CreateTemp(s.tarsDir(), temporaryPrefix)
	if err != nil {
		return nil, err
	}
	n := &notes{file: file, left: notesBytesMax}
	n.zip, _ = gzip.NewWriterLevel(n, gzip.BestSpeed) // the level is a right one
	n.tar, n.done, err = asm.NewInputTarStreamWithDone(tar, &lenient{Packer: storage.NewJSONPacker(n.zip), notes: n}, nil)
	if err != nil {
		_ = file.Close()
		return nil, errors.Join(err, os.Remove(file.Name()))
	}
	return n, nil
}

// Write implements io.Writer: what is too much is not kept, and ends nothing.
func (n *notes) Write(p []byte) (int, error) {
	if n.left >= 0 {
		n.left -= int64(len(p))
	}
	if n.left < 0 {
		return len(p), nil
	}
	return n.file.Write(p)
}

// keep makes the notes those of the layer. The tar has been read to its end.
func (n *notes) keep(path string) error {
	err := errors.Join(<-n.done, n.zip.Close())
	if err != nil || n.left < 0 {
		n.drop()
		return err
	}
	return errors.Join(n.file.Close(), os.Rename(n.file.Name(), path))
}

// drop forgets them. Doing it after keep does nothing.
func (n *notes) drop() {
	_ = n.tar.Close()
	_ = n.file.Close()
	_ = os.Remove(n.file.Name())
}

// WriteLayer writes the layer's tar, byte for byte as it came. Whoever reads it must check that: the disk may have failed meanwhile.
func (s *Store) WriteLayer(ctx context.Context, digest string, w io.Writer) error {
	diffID, err := v1.NewHash(digest) // of sha256 only: it has no other
	if err != nil {
		return errNoNotes
	}
	file, err := os.Open(s.tarPath(layerName(diffID)))
	if errors.Is(err, os.ErrNotExist) {
		return errNoNotes
	}
	if err != nil {
		return err
	}
	defer file.Close()
	zip, err := gzip.NewReader(bufio.NewReader(file))
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(filepath.Join(s.LayersDir(), layerName(diffID)))
	if err != nil {
		return err
	}
	defer root.Close()
	for all := storage.NewJSONUnpacker(zip); ; {
		entry, err := all.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = writeEntry(w, entry, root)
		}
		if err != nil {
			return err
		}
	}
}

// writeEntry writes a part of the tar: bytes of its own, or a file's. The library's way looks at each file's sum too, which takes longer
// than to encrypt it, and whoever reads the tar checks its digest.
func writeEntry(w io.Writer, entry *storage.Entry, root *os.Root) error {
	if entry.Type == storage.SegmentType {
		_, err := w.Write(entry.Payload)
		return err
	}
	if entry.Size == 0 {
		return nil
	}
	file, err := root.Open(entryName(entry.GetName()))
	if err != nil {
		return err
	}
	defer file.Close()
	if n, err := io.CopyN(w, file, entry.Size); err != nil {
		return fmt.Errorf("%s: %d of %d bytes: %w", entry.GetName(), n, entry.Size, errors.Join(errChanged, err))
	}
	return nil
}
