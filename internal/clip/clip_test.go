package clip

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct {
		text     string
		bytesMax int
		want     string
	}{
		"it fits":                  {"abc", 3, "abc"},
		"nothing":                  {"", 0, ""},
		"too long":                 {"abcd", 3, "abc…(4 bytes)"},
		"thousands":                {strings.Repeat("a", 700_000), 2, "aa…(700,000 bytes)"},
		"millions":                 {strings.Repeat("a", 1_234_567), 1, "a…(1,234,567 bytes)"},
		"not within a character":   {"aä", 2, "a…(3 bytes)"},
		"what was no text remains": {"a\xff", 2, "a\xff"},
	} {
		if got := Text(c.text, c.bytesMax); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestTheWholeIsNotKept: a short part of a long text has memory of its own.
func TestTheWholeIsNotKept(t *testing.T) {
	whole := strings.Repeat("a", 1000)
	begin, end := uintptr(unsafe.Pointer(unsafe.StringData(whole))), uintptr(len(whole))
	for name, got := range map[string]string{"a part": Copy(whole[:5], 10), "cut": Copy(whole, 10), "cut text": Text(whole, 10)} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(got))); at >= begin && at < begin+end {
			t.Errorf("%s keeps the whole", name)
		}
	}
}

func TestList(t *testing.T) {
	for name, c := range map[string]struct{ texts, want []string }{
		"it fits":  {[]string{"a", "b"}, []string{"a", "b"}},
		"too many": {[]string{"a", "b", "c", "d"}, []string{"a", "b", "…(2 more)"}},
		"too long": {[]string{"aaaa"}, []string{"aaa…(4 bytes)"}},
	} {
		if diff := cmp.Diff(c.want, List(c.texts, 2, 3)); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

type valuer string

func (v valuer) LogValue() slog.Value { return slog.StringValue(string(v)) }

// TestALineIsBounded wherever the long text stands in it.
func TestALineIsBounded(t *testing.T) {
	long := strings.Repeat("x", 700_000)
	for name, log := range map[string]func(*slog.Logger){
		"a message":       func(l *slog.Logger) { l.Info(long) },
		"a value":         func(l *slog.Logger) { l.Info("m", "k", long) },
		"an error":        func(l *slog.Logger) { l.Info("m", "err", errors.New(long)) },
		"bytes":           func(l *slog.Logger) { l.Info("m", "k", []byte(long)) },
		"something else":  func(l *slog.Logger) { l.Info("m", "k", []string{long}) },
		"a group":         func(l *slog.Logger) { l.Info("m", slog.Group("g", "a", 1, "k", long)) },
		"what resolves":   func(l *slog.Logger) { l.Info("m", "k", valuer(long)) },
		"a logger's own":  func(l *slog.Logger) { l.With("k", long).Info("m") },
		"one in a group":  func(l *slog.Logger) { l.WithGroup("g").Info("m", "k", long) },
		"after short one": func(l *slog.Logger) { l.Info("m", "a", 1, "b", true, "k", long) },
	} {
		var out bytes.Buffer
		log(slog.New(Handler(slog.NewTextHandler(&out, nil))))
		if !strings.Contains(out.String(), " bytes)") || out.Len() > ValueBytesMax+200 || !strings.HasSuffix(out.String(), "\n") {
			t.Errorf("%s: a line of %d bytes: %.200s", name, out.Len(), out.String())
		}
	}
}

// TestShortLinesStay, to the letter.
func TestShortLinesStay(t *testing.T) {
	var bounded, plain bytes.Buffer
	for _, to := range []slog.Handler{Handler(slog.NewTextHandler(&bounded, nil)), slog.NewTextHandler(&plain, nil)} {
		slog.New(to).With("w", 1).WithGroup("g").Info("m", "err", errors.New("e"), "n", 3, "k", valuer("v"), slog.Group("h", "a", "b"))
	}
	_, withoutTime, _ := strings.Cut(bounded.String(), " ")
	if _, want, _ := strings.Cut(plain.String(), " "); withoutTime != want {
		t.Errorf("%q, want %q", withoutTime, want)
	}
}
