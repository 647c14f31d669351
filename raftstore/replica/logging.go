package replica

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// levelTrace is where the library's own debug output goes.
const levelTrace = slog.LevelDebug - 4

// logBridge sends the library's log to slog one or two levels lower: its errors
// are mostly about a peer that cannot be reached, which may heal.
type logBridge struct {
	hclog.Logger // answers the questions nobody asks
	out          *slog.Logger
}

func bridgeLogger(out *slog.Logger) hclog.Logger {
	return &logBridge{Logger: hclog.NewNullLogger(), out: out}
}

// Log implements hclog.Logger.
func (b *logBridge) Log(level hclog.Level, message string, args ...any) {
	b.out.Log(context.Background(), slogLevel(level), "raft: "+message, args...)
}

func slogLevel(level hclog.Level) slog.Level {
	switch level {
	case hclog.Error:
		return slog.LevelWarn
	case hclog.Warn:
		return slog.LevelInfo
	case hclog.Info:
		return slog.LevelDebug
	}
	return levelTrace
}

// Trace implements hclog.Logger.
func (b *logBridge) Trace(message string, args ...any) { b.Log(hclog.Trace, message, args...) }

// Debug implements hclog.Logger.
func (b *logBridge) Debug(message string, args ...any) { b.Log(hclog.Debug, message, args...) }

// Info implements hclog.Logger.
func (b *logBridge) Info(message string, args ...any) { b.Log(hclog.Info, message, args...) }

// Warn implements hclog.Logger.
func (b *logBridge) Warn(message string, args ...any) { b.Log(hclog.Warn, message, args...) }

// Error implements hclog.Logger.
func (b *logBridge) Error(message string, args ...any) { b.Log(hclog.Error, message, args...) }

// With implements hclog.Logger.
func (b *logBridge) With(args ...any) hclog.Logger {
	return &logBridge{Logger: b.Logger, out: b.out.With(args...)}
}

// Named implements hclog.Logger.
func (b *logBridge) Named(string) hclog.Logger { return b }

// ResetNamed implements hclog.Logger.
func (b *logBridge) ResetNamed(string) hclog.Logger { return b }
