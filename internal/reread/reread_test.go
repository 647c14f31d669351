package reread

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const every = 10 * time.Second

var (
	errText    = errors.New("a mistake in the text")
	errGone    = errors.New("the file is gone")
	errSilence = errors.New("a plugin does not answer")
)

// world is a file, and what becomes of it.
type world struct {
	mu      sync.Mutex // a test changes the file while it is followed
	text    string
	readErr error
	// silent: what is judged cannot be put in force.
	silent  bool
	inForce string
	judged  []string
	dropped []string
	said    strings.Builder
}

func (w *world) config() Config {
	return Config{
		Every: every, Warning: "was not taken", Logger: slog.New(slog.NewTextHandler(&w.said, nil)),
		Read: func() ([]byte, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return []byte(w.text), w.readErr
		},
		Judge: func(_ context.Context, text []byte) (Next, error) {
			w.judged = append(w.judged, string(text))
			if strings.HasPrefix(string(text), "bad") {
				return Next{}, errText
			}
			return Next{Apply: func(context.Context) error {
				w.mu.Lock()
				defer w.mu.Unlock()
				if w.silent {
					return errSilence
				}
				w.inForce = string(text)
				return nil
			}, Drop: func() { w.dropped = append(w.dropped, string(text)) }}, nil
		},
	}
}

// change changes the world between two looks.
func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

func (w *world) told() int { return strings.Count(w.said.String(), "was not taken") }

// TestFollower: each step is long enough for many looks.
func TestFollower(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &world{text: "a", inForce: "a"}
		go New(w.config(), []byte("a")).Run(t.Context())
		for _, c := range []struct {
			name    string
			do      func()
			inForce string
			told    int
		}{
			{"nothing has changed", func() {}, "a", 0},
			{"a new text", func() { w.text = "b" }, "b", 0},
			{"a mistake is told once", func() { w.text = "bad" }, "b", 1},
			{"the text in force again", func() { w.text = "b" }, "b", 1},
			{"the same mistake after it was right", func() { w.text = "bad" }, "b", 2},
			{"another mistake of the same words", func() { w.text = "bad, too" }, "b", 2},
			{"no file", func() { w.readErr = errGone }, "b", 3},
			{"a file again", func() { w.readErr = nil }, "b", 4},
			{"right, but for a plugin", func() { w.text, w.silent = "c", true }, "b", 5},
			{"another one, which waits too", func() { w.text = "d" }, "b", 5},
			{"the plugin answers", func() { w.silent = false }, "d", 5},
			{"one that waits", func() { w.text, w.silent = "e", true }, "d", 6},
			{"and is taken back", func() { w.text = "d" }, "d", 6},
			{"before the plugin answers", func() { w.silent = false }, "d", 6},
		} {
			w.change(c.do)
			time.Sleep(5 * every)
			synctest.Wait()
			if w.inForce != c.inForce || w.told() != c.told {
				t.Errorf("%s: %s is in force, told %d times: %s", c.name, w.inForce, w.told(), &w.said)
			}
		}
		if want := []string{"b", "bad", "bad", "bad, too", "bad, too", "c", "d", "e"}; !slices.Equal(w.judged, want) {
			t.Errorf("judged %q", w.judged)
		}
		if want := []string{"c", "e"}; !slices.Equal(w.dropped, want) {
			t.Errorf("dropped %q", w.dropped)
		}
	})
}

// TestAFileThatChangesWhileItIsJudged is judged again, though it says afterwards what it said before.
func TestAFileThatChangesWhileItIsJudged(t *testing.T) {
	w := &world{text: "b", inForce: "a"}
	config, judge, torn := w.config(), w.config().Judge, true
	config.Judge = func(ctx context.Context, text []byte) (Next, error) {
		if torn {
			torn, w.text = false, "bad"
			return Next{}, errGone
		}
		return judge(ctx, text)
	}
	f := New(config, []byte("a"))
	if err := f.Look(t.Context()); err == nil {
		t.Error("it was there")
	}
	w.text = "b"
	if err := f.Look(t.Context()); err != nil || w.inForce != "b" {
		t.Errorf("%v, %s is in force", err, w.inForce)
	}
}

func TestToldOfSeveralThings(t *testing.T) {
	var told Told
	for i, c := range []struct {
		thing string
		err   error
		want  bool
	}{
		{"a", errText, true}, {"b", errText, true}, {"a", errText, false}, {"a", errGone, true}, {"b", nil, false}, {"a", errGone, false},
		{"b", errText, true}, {"c", nil, false},
	} {
		if got := told.IsNew(c.thing, c.err); got != c.want {
			t.Errorf("%d: %v", i, got)
		}
	}
	told.Keep(func(thing string) bool { return thing == "b" })
	if told.IsNew("b", errText) || !told.IsNew("a", errGone) {
		t.Error("only what is not there is forgotten")
	}
}

// TestAMistakeInAnotherFile: a text names a file that comes later. The text is as before, and is judged again.
func TestAMistakeInAnotherFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, missing := &world{text: "a", inForce: "a"}, true
		config := w.config()
		judge := config.Judge
		config.Judge = func(ctx context.Context, text []byte) (Next, error) {
			next, err := judge(ctx, text)
			w.change(func() {
				if missing {
					err = errGone
				}
			})
			return next, err
		}
		go New(config, []byte("a")).Run(t.Context())
		synctest.Wait()
		w.change(func() { w.text = "names another" })
		time.Sleep(looksAtMistake * 3 * every)
		synctest.Wait()
		if w.told() != 1 || w.inForce != "a" {
			t.Errorf("told %d times, %q is in force", w.told(), w.inForce)
		}
		w.change(func() { missing = false })
		time.Sleep((looksAtMistake + 1) * every)
		synctest.Wait()
		if w.inForce != "names another" {
			t.Errorf("%q is in force after the other file came", w.inForce)
		}
	})
}
