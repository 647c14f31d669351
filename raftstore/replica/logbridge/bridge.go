package logbridge

import (
	"context"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// levelTrace is where the library's own debug output goes.
const levelTrace = slog.LevelDebug - 4

// bridge sends the library's log to slog one or two levels lower: its errors
// are mostly about a peer that cannot be reached, which may heal.
type bridge struct {
	hclog.Logger // answers the questions nobody asks
	out          *slog.Logger
}

// New returns a logger of the library that writes to out.
func New(out *slog.Logger) hclog.Logger {
	return &bridge{Logger: hclog.NewNullLogger(), out: out}
}

// Log implements hclog.Logger.
func (b *bridge) Log(level hclog.Level, message string, args ...any) {
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
func (b *bridge) Trace(message string, args ...any) { b.Log(hclog.Trace, message, args...) }

// Debug implements hclog.Logger.
func (b *bridge) Debug(message string, args ...any) { b.Log(hclog.Debug, message, args...) }

// Info implements hclog.Logger.
func (b *bridge) Info(message string, args ...any) { b.Log(hclog.Info, message, args...) }

// Warn implements hclog.Logger.
func (b *bridge) Warn(message string, args ...any) { b.Log(hclog.Warn, message, args...) }

// Error implements hclog.Logger.
func (b *bridge) Error(message string, args ...any) { b.Log(hclog.Error, message, args...) }

// With implements hclog.Logger.
func (b *bridge) With(args ...any) hclog.Logger {
	return &bridge{Logger: b.Logger, out: b.out.With(args...)}
}

// Named implements hclog.Logger.
func (b *bridge) Named(string) hclog.Logger { return b }

// ResetNamed implements hclog.Logger.
func (b *bridge) ResetNamed(string) hclog.Logger { return b }
