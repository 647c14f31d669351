package actions

import (
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/internal/clip"
)

const (
	// LinesMax is how many lines a Log keeps, BytesMax how many bytes of texts are in them. Of more, the oldest go.
	LinesMax = 10_000
	BytesMax = 8 << 20
	// textBytesMax is how much a line keeps of one text, noteBytesMax of a note.
	textBytesMax = 1 << 10
	noteBytesMax = 8 << 10
)

// Log is the last lines of one part of a server. The zero value is empty and ready.
type Log struct {
	mu    sync.Mutex
	lines []Line // line n, counted from 0, is at n modulo LinesMax
	first uint64 // the oldest line that is kept
	next  uint64 // how many lines there ever were
	bytes int    // of the texts of the lines that are kept
	// changed is closed by the next line; nil unless a reader waits for it.
	changed chan struct{}
}

// Add adds a line. Of a text that is too long the beginning is kept, and a mark that says how long it was.
func (l *Log) Add(line Line) {
	if l == nil {
		return
	}
	size := line.clip()
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.next-l.first == LinesMax || l.first < l.next && l.bytes+size > BytesMax {
		l.forget()
	}
	if len(l.lines) < LinesMax {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.next%LinesMax] = line
	}
	l.next++
	l.bytes += size
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
	}
}

// forget drops the oldest line. The lock is held.
func (l *Log) forget() {
	oldest := &l.lines[l.first%LinesMax]
	l.bytes -= oldest.size()
	*oldest = Line{}
	l.first++
}

// Clipped is the line with its texts cut to what a Log keeps.
func (l Line) Clipped() Line {
	l.clip()
	return l
}

// clip cuts what is too long, and returns how many bytes of text are left.
func (l *Line) clip() int {
	l.Note = clip.Text(l.Note, noteBytesMax)
	for _, text := range l.texts() {
		*text = clip.Text(*text, textBytesMax)
	}
	return l.size()
}

// size is how many bytes of text are in the line.
func (l *Line) size() int {
	size := len(l.Note)
	for _, text := range l.texts() {
		size += len(*text)
	}
	return size
}

// texts are those of the line, but for the note.
func (l *Line) texts() [11]*string {
	return [...]*string{
		&l.User, &l.Loop, &l.Wanted.Text, &l.Observed.Text, &l.Verb, &l.Object, &l.Failure,
		&l.Cause.Kind, &l.Cause.Namespace, &l.Cause.Name, &l.Cause.Version,
	}
}

// Note adds a line that is a text.
func (l *Log) Note(now time.Time, text string) { l.Add(Line{At: now, Note: text}) }

// Last is the number of the first of the last n lines, of all that there are if n is negative.
func (l *Log) Last(n int64) uint64 {
	if l == nil {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := l.next - l.first
	if n >= 0 && uint64(n) < kept {
		kept = uint64(n)
	}
	return l.next - kept
}

// Read copies lines from the given number on into a buffer. It returns how many were copied, the number to go on with, and how many
// lines before the first copied one are gone. If nothing was copied, changed is closed when there is more.
func (l *Log) Read(from uint64, into []Line) (read int, next, missed uint64, changed <-chan struct{}) {
	if l == nil {
		return 0, from, 0, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if from < l.first {
		from, missed = l.first, l.first-from
	}
	for read < len(into) && from < l.next {
		into[read] = l.lines[from%LinesMax]
		read++
		from++
	}
	if read == 0 && l.changed == nil {
		l.changed = make(chan struct{})
	}
	if read == 0 {
		changed = l.changed
	}
	return read, from, missed, changed
}
