package main

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
)

// TestQuietAtTheEnd: after the end only errors are told, and everything to who asked for everything.
func TestQuietAtTheEnd(t *testing.T) {
	for level, want := range map[slog.Level]string{slog.LevelInfo: "before late-error", slog.LevelDebug: "before late late-error"} {
		var out bytes.Buffer
		ctx, end := context.WithCancel(t.Context())
		logger := slog.New(untilEnd{slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}), ctx}).With("part", "raft")
		logger.Warn("before")
		end()
		logger.Warn("late")
		logger.Error("late-error")
		var said []string
		for line := range strings.Lines(out.String()) {
			_, after, _ := strings.Cut(line, "msg=")
			said = append(said, strings.Fields(after)[0])
		}
		if got := strings.Join(said, " "); got != want {
			t.Errorf("at %v: %s, want %s", level, got, want)
		}
	}
}
