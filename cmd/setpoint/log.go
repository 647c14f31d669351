package main

import (
	"context"
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// quietLibraries sends what the Kubernetes libraries log where everything else
// goes, as Debug: they call errors what is retried a moment later, and what
// matters to an operator our own parts say in their own words.
func quietLibraries(logger *slog.Logger) {
	klog.SetLogger(logr.FromSlogHandler(debugOnly{logger.With("from", "client-go").Handler()}))
	runtime.ReallyCrash = false
}

// debugOnly is a handler for which every record is Debug.
type debugOnly struct{ slog.Handler }

func (h debugOnly) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h debugOnly) Handle(ctx context.Context, r slog.Record) error {
	if !h.Enabled(ctx, r.Level) {
		return nil // for errors, logr does not ask before
	}
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

func (h debugOnly) WithAttrs(attrs []slog.Attr) slog.Handler {
	return debugOnly{h.Handler.WithAttrs(attrs)}
}

func (h debugOnly) WithGroup(name string) slog.Handler { return debugOnly{h.Handler.WithGroup(name)} }

// untilEnd is a handler that lets errors alone pass once ctx has ended, unless everything is logged: parts that end one after the
// other miss each other, and whoever ended them all knows why.
type untilEnd struct {
	slog.Handler
	ctx context.Context
}

func (h untilEnd) Enabled(ctx context.Context, level slog.Level) bool {
	if h.ctx.Err() != nil && level < slog.LevelError && !h.Handler.Enabled(ctx, slog.LevelDebug) {
		return false
	}
	return h.Handler.Enabled(ctx, level)
}

func (h untilEnd) WithAttrs(attrs []slog.Attr) slog.Handler {
	return untilEnd{h.Handler.WithAttrs(attrs), h.ctx}
}

func (h untilEnd) WithGroup(name string) slog.Handler {
	return untilEnd{h.Handler.WithGroup(name), h.ctx}
}
