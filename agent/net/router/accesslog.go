package router

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/setpoint-io/setpoint/internal/clip"
)

const (
	// accessQueueMax is how many requests wait to be written to the access log; more are dropped, and counted.
	accessQueueMax = 4096
	// accessFieldBytesMax is how long what a client says may be in the log; of a longer one the line says how long it was.
	accessFieldBytesMax = 1024
)

// access is one line of the access log.
type access struct {
	*http.Request
	at    int
	owner owner
	code  int
	bytes int64
	begun time.Time
	took  time.Duration
}

// accessLog writes a line of JSON for each request. Nobody waits for it.
type accessLog struct {
	metrics *Metrics
	handler slog.Handler
	queue   chan slog.Record
}

func newAccessLog(to io.Writer, m *Metrics) *accessLog {
	withoutLevel := func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}
	return &accessLog{
		metrics: m, queue: make(chan slog.Record, accessQueueMax),
		handler: slog.NewJSONHandler(to, &slog.HandlerOptions{ReplaceAttr: withoutLevel}),
	}
}

// run writes until ctx ends and what is in the queue then is written.
func (l *accessLog) run(ctx context.Context) {
	for {
		select {
		case record := <-l.queue:
			_ = l.handler.Handle(ctx, record) // who reads it is gone
		case <-ctx.Done():
			for len(l.queue) > 0 {
				_ = l.handler.Handle(ctx, <-l.queue)
			}
			return
		}
	}
}

func (l *accessLog) add(a *access) {
	select {
	case l.queue <- a.record():
	default:
		l.metrics.unlogged.Inc()
	}
}

// record has no query of the request: it may be a secret.
func (a *access) record() slog.Record {
	client, _, _ := net.SplitHostPort(a.RemoteAddr)
	line := slog.NewRecord(a.begun, slog.LevelInfo, "", 0)
	line.AddAttrs(
		slog.Int("port", a.at), slog.String("client", client), slog.String("method", cut(a.Method)), slog.String("host", cut(a.Host)),
		slog.String("path", cut(a.URL.Path)), slog.String("protocol", a.Proto), slog.Bool("tls", a.TLS != nil),
		slog.Int("code", a.code), slog.Int64("bytes", a.bytes), slog.Float64("seconds", a.took.Seconds()),
		slog.String("kind", a.owner.kind), slog.String("namespace", a.owner.namespace), slog.String("name", a.owner.name),
		slog.String("requestID", cut(a.Header.Get(requestID))), slog.String("userAgent", cut(a.UserAgent())),
	)
	return line
}

// cut has memory of its own: a line that waits must not keep the whole header.
func cut(text string) string { return clip.Copy(text, accessFieldBytesMax) }
