package parts

import (
	"bytes"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/controllers/reconcile/actions"
	"github.com/setpoint-io/setpoint/internal/clip"
)

// Logger is the server's logger, but what it is told from level Info on is also kept in the log of a part. Values are cut, in both, to
// clip.ValueBytesMax.
func (p *Parts) Logger(part string) *slog.Logger {
	kept := slog.NewTextHandler(notes{p.logs[part]}, &slog.HandlerOptions{
		ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
			if len(groups) == 0 && a.Key == slog.TimeKey {
				return slog.Attr{} // each line has its time
			}
			return a
		},
	})
	return slog.New(clip.Handler(slog.NewMultiHandler(p.logger.Handler(), kept)))
}

// notes adds each line that is written to it to a log.
type notes struct{ log *actions.Log }

func (n notes) Write(line []byte) (int, error) {
	n.log.Note(time.Now(), string(bytes.TrimRight(line, "\n")))
	return len(line), nil
}
