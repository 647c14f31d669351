package knownservers

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func write(path string, data []byte) error { return os.WriteFile(path, data, 0o600) }

func open(t *testing.T, dir string, begin ...string) *List {
	t.Helper()
	return Open(dir, begin, write, slog.New(slog.NewTextHandler(t.Output(), nil)))
}

func expect(t *testing.T, what string, l *List, want ...string) {
	t.Helper()
	if got := l.Now(); !slices.Equal(got, want) {
		t.Errorf("%s: %v, want %v", what, got, want)
	}
}

// TestServersAreReplaced: what servers tell replaces what was known, in this run and after a restart with a stale list.
func TestServersAreReplaced(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		l := open(t, dir, "a:1", "b:1")
		expect(t, "at first", l, "a:1", "b:1")
		l.Told("b:1", []string{"c:1", "b:1"})
		expect(t, "told", l, "b:1", "c:1")
		l.Told("b:1", nil)
		expect(t, "a server that does not tell", l, "b:1", "c:1")
		time.Sleep(doubtAfter)
		expect(t, "no server answers", l, "b:1", "c:1", "a:1")
		l.Told("e:1", []string{"d:1", "e:1"})
		expect(t, "one that was replaced answers", l, "d:1", "e:1")
	})
	expect(t, "restarted with the first day's list", open(t, dir, "a:1", "b:1"), "d:1", "e:1", "a:1", "b:1")
}

// TestABalancerGoesOnToBeAsked: it tells addresses that this machine may not reach.
func TestABalancerGoesOnToBeAsked(t *testing.T) {
	l := Fixed([]string{"balancer:1"}, slog.New(slog.DiscardHandler))
	l.Told("balancer:1", []string{"a:1", "b:1"})
	expect(t, "told by a balancer", l, "a:1", "b:1", "balancer:1")
	l.Told("a:1", []string{"a:1", "b:1"})
	expect(t, "told by one of them", l, "a:1", "b:1")
}

// TestOnlyAddressesAreTaken: a server that tells nonsense, or too much of it, does not fill the list.
func TestOnlyAddressesAreTaken(t *testing.T) {
	l := Fixed([]string{"a:1"}, slog.New(slog.DiscardHandler))
	l.Told("a:1", []string{"", "no-port", ":6443", "x:", "two words:1", "line\nbreak:1", strings.Repeat("x", 300) + ":1"})
	expect(t, "nonsense", l, "a:1")
	l.Told("b:1", []string{"b:1", "no-port", "[fd00::1]:6443", "b:1"})
	expect(t, "some of it", l, "[fd00::1]:6443", "b:1")
	var many []string
	for i := range 3 * Max {
		many = append(many, fmt.Sprintf("s%d:1", i))
	}
	l.Told("s0:1", many)
	if got := l.Now(); len(got) != Max {
		t.Errorf("%d servers are kept of %d, want %d", len(got), len(many), Max)
	}
}

// TestAFileThatCannotBeRead counts as none, and the next word of a server replaces it.
func TestAFileThatCannotBeRead(t *testing.T) {
	for name, text := range map[string]string{"empty": "", "no list": "\x00\x01", "one line is none": "a:1\nb\n"} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, fileName)
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), write(path, []byte(text))); err != nil {
				t.Fatal(err)
			}
			l := open(t, dir, "z:1")
			expect(t, name, l, "z:1")
			l.Told("a:1", []string{"a:1"})
			expect(t, "after a restart", open(t, dir, "z:1"), "a:1", "z:1")
		})
	}
}

// TestADiskThatIsFull: what cannot be kept counts all the same while the agent runs.
func TestADiskThatIsFull(t *testing.T) {
	full := func(string, []byte) error { return errors.New("no space left on device") }
	l := Open(t.TempDir(), []string{"a:1"}, full, slog.New(slog.DiscardHandler))
	l.Told("b:1", []string{"b:1"})
	expect(t, "told", l, "b:1")
}
