package history

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	// fileBytes is when a file is closed and another begun: the oldest one is what is trimmed.
	fileBytes = 8 << 20
	// suffix is that of all files; the name is the revision after which the file begins.
	suffix    = ".history"
	nameWidth = 20
	filePerm  = 0o600
	dirPerm   = 0o700
)

// file is one file of blocks. Who still reads one that was removed reads on: the last reader closes it.
type file struct {
	path   string
	handle *os.File
	bytes  int64
	blocks []*block
	// begun and written are when the first and the last block came, by this server's clock; of a file that was there already, when it
	// was changed last.
	begun, written time.Time
	// readers are those who hold it; gone: history has it no more.
	readers int
	gone    bool
	// damagedAt is how many bytes at the end could not be read.
	damagedBytes int64
}

func fileName(after uint64) string { return fmt.Sprintf("%0*d%s", nameWidth, after, suffix) }

// createFile begins a file; one of that name has nothing that counts.
func createFile(dir string, after uint64) (*file, error) {
	path := filepath.Join(dir, fileName(after))
	handle, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return nil, err
	}
	return &file{path: path, handle: handle, begun: time.Now()}, nil
}

// openFiles opens the files of the folder in their order. One that cannot be opened is a hole.
func (h *History) openFiles() ([]*file, error) {
	entries, err := os.ReadDir(h.config.Dir) // by name
	if err != nil {
		return nil, err
	}
	var files []*file
	for _, entry := range entries {
		number, ours := strings.CutSuffix(entry.Name(), suffix)
		if _, err := strconv.ParseUint(number, 10, 64); !ours || err != nil {
			continue
		}
		f, err := openFile(filepath.Join(h.config.Dir, entry.Name()))
		if err != nil {
			h.config.Logger.Warn("a file of history cannot be read", "file", entry.Name(), "err", err)
			continue
		}
		files = append(files, f)
	}
	return files, nil
}

func closeAll(files []*file) (err error) {
	for _, f := range files {
		err = errors.Join(err, f.handle.Close())
	}
	return err
}

// openFile reads the heads of a file's blocks. What cannot be read is passed over up to the next block that can.
func openFile(path string) (*file, error) {
	handle, err := os.OpenFile(path, os.O_RDWR, filePerm)
	if err != nil {
		return nil, err
	}
	info, err := handle.Stat()
	if err != nil {
		return nil, errors.Join(err, handle.Close())
	}
	f := &file{path: path, handle: handle, bytes: info.Size(), begun: info.ModTime(), written: info.ModTime()}
	for offset := int64(0); offset < f.bytes; {
		b, err := f.readBlock(offset)
		if err == nil {
			f.blocks = append(f.blocks, b)
			offset += b.bytes()
			continue
		}
		next, err := f.nextMagic(offset + 1)
		if err != nil {
			return nil, errors.Join(err, handle.Close())
		}
		f.damagedBytes += next - offset
		offset = next
	}
	return f, nil
}

// readBlock reads what is at an offset, but for the body, which must be there.
func (f *file) readBlock(offset int64) (*block, error) {
	framed, frame, err := f.readFramed(offset)
	if err != nil {
		return nil, err
	}
	b := &block{file: f, offset: offset, headBytes: frame.headBytes, bodyBytes: frame.bodyBytes}
	b.span, _, err = readHead(framed, frame)
	if err == nil && offset+b.bytes() > f.bytes {
		return nil, errDamaged
	}
	return b, err
}

// readFramed reads a frame with the head behind it.
func (f *file) readFramed(offset int64) ([]byte, frame, error) {
	framed := make([]byte, frameBytes)
	if _, err := f.handle.ReadAt(framed, offset); err != nil {
		return nil, frame{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	found, err := readFrame(framed)
	if err != nil {
		return nil, frame{}, err
	}
	framed = append(framed, make([]byte, found.headBytes)...)
	if _, err := f.handle.ReadAt(framed[frameBytes:], offset+frameBytes); err != nil {
		return nil, frame{}, fmt.Errorf("%w: %w", errDamaged, err)
	}
	return framed, found, nil
}

// marks reads a block's head again.
func (b *block) marks() ([]byte, error) {
	framed, frame, err := b.file.readFramed(b.offset)
	if err != nil {
		return nil, err
	}
	if frame.headBytes != b.headBytes || frame.bodyBytes != b.bodyBytes {
		return nil, errDamaged
	}
	_, marks, err := readHead(framed, frame)
	return marks, err
}

// dropUnread drops blocks from the end whose changes are not there, as after a power failure: the log may still have them.
func (f *file) dropUnread() {
	for len(f.blocks) > 0 {
		if _, err := f.blocks[len(f.blocks)-1].body(); !errors.Is(err, errDamaged) {
			return
		}
		f.blocks = f.blocks[:len(f.blocks)-1]
	}
}

// body reads a block's changes.
func (b *block) body() ([]byte, error) {
	text := make([]byte, b.bytes())
	if _, err := b.file.handle.ReadAt(text, b.offset); err != nil {
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
	f, err := readFrame(text)
	if err != nil || f.headBytes != b.headBytes || f.bodyBytes != b.bodyBytes {
		return nil, errDamaged
	}
	return inflate(text[frameBytes+int(f.headBytes):], f, b.rawBytes)
}

// nextMagic is where the next block may begin, or the end of the file.
func (f *file) nextMagic(from int64) (int64, error) {
	const step = 64 << 10
	window := make([]byte, step+len(blockMagic)-1)
	for offset := from; offset < f.bytes; offset += step {
		n, err := f.handle.ReadAt(window, offset)
		if err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		if i := strings.Index(string(window[:n]), string(blockMagic[:])); i >= 0 {
			return offset + int64(i), nil
		}
	}
	return f.bytes, nil
}

// write writes a block behind the others, and does not yet count it. After an error nothing of it is there.
func (f *file) write(o *open, text []byte, headBytes, bodyBytes uint32) (*block, error) {
	if _, err := f.handle.WriteAt(text, f.bytes); err != nil {
		return nil, errors.Join(err, f.handle.Truncate(f.bytes))
	}
	return &block{span: o.span, file: f, offset: f.bytes, headBytes: headBytes, bodyBytes: bodyBytes}, nil
}

// remove takes a file from the disk; it is no fault if it is gone.
func (f *file) remove() error {
	if err := os.Remove(f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
