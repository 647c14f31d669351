package clip

import (
	"context"
	"fmt"
	"log/slog"
)

// ValueBytesMax is how much of a message, and of each value, is in a line of a log.
const ValueBytesMax = 4 << 10

// Handler passes records on to next with values of at most ValueBytesMax bytes, and a mark where they were longer.
func Handler(next slog.Handler) slog.Handler { return handler{next} }

type handler struct{ slog.Handler }

// Handle implements slog.Handler.
func (h handler) Handle(ctx context.Context, r slog.Record) error {
	long := len(r.Message) > ValueBytesMax
	r.Attrs(func(a slog.Attr) bool {
		_, cut := clipped(a.Value)
		long = long || cut
		return !long
	})
	if !long {
		return h.Handler.Handle(ctx, r)
	}
	short := slog.NewRecord(r.Time, r.Level, Text(r.Message, ValueBytesMax), r.PC)
	r.Attrs(func(a slog.Attr) bool {
		short.AddAttrs(clippedAttr(a))
		return true
	})
	return h.Handler.Handle(ctx, short)
}

// WithAttrs implements slog.Handler.
func (h handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	short := make([]slog.Attr, len(attrs))
	for i := range attrs {
		short[i] = clippedAttr(attrs[i])
	}
	return handler{h.Handler.WithAttrs(short)}
}

// WithGroup implements slog.Handler.
func (h handler) WithGroup(name string) slog.Handler { return handler{h.Handler.WithGroup(name)} }

func clippedAttr(a slog.Attr) slog.Attr {
	a.Value, _ = clipped(a.Value)
	return a
}

// clipped is a value as a line may have it, and whether that is another one.
func clipped(v slog.Value) (short slog.Value, cut bool) {
	v = v.Resolve()
	switch v.Kind() {
	case slog.KindString:
		if text := v.String(); len(text) > ValueBytesMax {
			return slog.StringValue(Text(text, ValueBytesMax)), true
		}
	case slog.KindAny:
		if text := fmt.Sprintf("%+v", v.Any()); len(text) > ValueBytesMax { // as slog's text handler writes it
			return slog.StringValue(Text(text, ValueBytesMax)), true
		}
	case slog.KindGroup:
		attrs := make([]slog.Attr, 0, len(v.Group()))
		for _, a := range v.Group() {
			inner, is := clipped(a.Value)
			attrs, cut = append(attrs, slog.Attr{Key: a.Key, Value: inner}), cut || is
		}
		return slog.GroupValue(attrs...), cut
	}
	return v, false
}
