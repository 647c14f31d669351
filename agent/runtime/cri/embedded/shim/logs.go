package shim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// lineBytesMax cuts longer lines into pieces tagged P (partial); the last piece is tagged F, as CRI prescribes.
const lineBytesMax = 16 << 10

// criLog writes "<RFC3339Nano> <stream> <P|F> <text>" lines of both streams to one file.
type criLog struct {
	mu   sync.Mutex
	path string
	file *os.File
	now  func() time.Time
}

func openLog(path string) (*criLog, error) {
	log := &criLog{path: path, now: time.Now}
	if path == "" {
		return log, nil
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, fmt.Errorf("container log: %w", err)
	}
	return log, log.reopen()
}

// reopen follows a rotation: whoever renamed the old file wants a new one at the same path.
func (l *criLog) reopen() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.path == "" {
		return nil
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o640)
	if err != nil {
		return fmt.Errorf("container log: %w", err)
	}
	if l.file != nil {
		l.file.Close()
	}
	l.file = file
	return nil
}

// write appends with a single system call, so that a reader never sees half a record.
func (l *criLog) write(records []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return
	}
	// A full disk loses log lines; it must not stop the container.
	_, _ = l.file.Write(records)
}

func (l *criLog) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		l.file.Close()
		l.file = nil
	}
}

// lineWriter turns one stream's bytes into records.
type lineWriter struct {
	log     *criLog
	stream  string
	pending []byte
	out     bytes.Buffer
}

// Write never fails: see criLog.write.
func (w *lineWriter) Write(data []byte) (int, error) {
	stamp := w.log.now()
	w.out.Reset()
	rest := data
	for len(rest) > 0 {
		end := bytes.IndexByte(rest, '\n')
		room := lineBytesMax - len(w.pending)
		switch {
		case end >= 0 && end <= room:
			w.record(stamp, 'F', rest[:end])
			rest = rest[end+1:]
		case len(rest) >= room:
			w.record(stamp, 'P', rest[:room])
			rest = rest[room:]
		default:
			w.pending = append(w.pending, rest...)
			rest = nil
		}
	}
	if w.out.Len() > 0 {
		w.log.write(w.out.Bytes())
	}
	return len(data), nil
}

// flush records what was left without a newline when the stream ended.
func (w *lineWriter) flush() {
	if len(w.pending) == 0 {
		return
	}
	w.out.Reset()
	w.record(w.log.now(), 'P', nil)
	w.log.write(w.out.Bytes())
}

func (w *lineWriter) record(stamp time.Time, tag byte, text []byte) {
	w.out.WriteString(stamp.Format(time.RFC3339Nano))
	w.out.WriteByte(' ')
	w.out.WriteString(w.stream)
	w.out.WriteByte(' ')
	w.out.WriteByte(tag)
	w.out.WriteByte(' ')
	w.out.Write(w.pending)
	w.out.Write(text)
	w.out.WriteByte('\n')
	w.pending = w.pending[:0]
}
