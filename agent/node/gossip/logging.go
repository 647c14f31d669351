package gossip

import (
	"bytes"
	"context"
	"log"
	"log/slog"
)

// newLogger turns the library's lines into debug records: it warns of every
// probe that is lost, which is no news to anyone.
func newLogger(out *slog.Logger) *log.Logger {
	return log.New(&lineLogger{out}, "", 0)
}

type lineLogger struct{ out *slog.Logger }

// Write implements io.Writer: one line a call.
func (l *lineLogger) Write(line []byte) (int, error) {
	if l.out.Enabled(context.TODO(), slog.LevelDebug) { // lines have no context
		l.out.Debug("gossip", "line", string(bytes.TrimSpace(line)))
	}
	return len(line), nil
}
