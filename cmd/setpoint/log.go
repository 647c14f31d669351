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
