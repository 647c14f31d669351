package actions

import (
	"sync"
	"time"
)

// LinesMax is how many lines a Log keeps. Of more, the oldest go.
const LinesMax = 10_000

// Log is the last lines of one part of a server. The zero value is empty and ready.
type Log struct {
	mu    sync.Mutex
	lines []Line // line n, counted from 0, is at n modulo LinesMax
	next  uint64 // how many lines there ever were
	// changed is closed by the next line; nil unless a reader waits for it.
	changed chan struct{}
}

// Add adds a line.
func (l *Log) Add(line Line) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.lines) < LinesMax {
		l.lines = append(l.lines, line)
	} else {
		l.lines[l.next%LinesMax] = line
	}
	l.next++
	if l.changed != nil {
		close(l.changed)
		l.changed = nil
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
	kept := uint64(len(l.lines))
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
	if oldest := l.next - uint64(len(l.lines)); from < oldest {
		from, missed = oldest, oldest-from
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
