package logbridge

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
)

func TestTheLibraryIsQuieter(t *testing.T) {
	var out bytes.Buffer
	bridge := New(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: levelTrace}))).Named("raft").With("peer", "b")
	bridge.Error("cannot reach", "error", "refused")
	bridge.Warn("slow")
	bridge.Info("elected")
	bridge.Debug("sent")
	for i, want := range []string{
		`level=WARN msg="raft: cannot reach" peer=b error=refused`,
		`level=INFO msg="raft: slow" peer=b`,
		`level=DEBUG msg="raft: elected" peer=b`,
		`level=DEBUG-4 msg="raft: sent" peer=b`,
	} {
		if line := strings.Split(out.String(), "\n")[i]; !strings.HasSuffix(line, want) {
			t.Errorf("%q, want %q", line, want)
		}
	}
}
