package founded

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"testing"
	"time"
)

// page is a keeper in memory.
type page struct {
	text []byte
	fail error
}

func (p *page) Load() ([]byte, error) {
	if p.text == nil {
		return nil, fs.ErrNotExist
	}
	return p.text, nil
}

func (p *page) Save(text []byte) error {
	if p.fail == nil {
		p.text = text
	}
	return p.fail
}

func (p *page) String() string { return "the page" }

var when = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestWhoMayFound(t *testing.T) {
	p := &page{}
	b := Open(p)
	must(t, b.MayFound("a", "1"))
	must(t, b.Founded(map[string]string{"a": "1", "b": "2"}, nil, when))
	for name, c := range map[string]struct {
		server, nonce string
		want          error
	}{
		"was counted":              {"b", "2", nil},
		"lost what was counted":    {"b", "3", ErrBefore},
		"was not counted":          {"c", "4", ErrBefore},
		"has no nonce":             {"c", "", ErrBefore},
		"has the nonce of another": {"a", "2", ErrBefore},
	} {
		if err := Open(p).MayFound(c.server, c.nonce); !errors.Is(err, c.want) {
			t.Errorf("a server that %s: %v", name, err)
		}
	}
	// A server of a shared folder that has opened it before the founding.
	if err := b.MayFound("c", "4"); !errors.Is(err, ErrBefore) {
		t.Errorf("it remembers an empty page: %v", err)
	}
	if err := Open(p).Founded(map[string]string{"a": "1"}, nil, when); !errors.Is(err, ErrBefore) {
		t.Errorf("one of two that were counted founds alone: %v", err)
	}
	p.text = []byte(`{"life": `)
	if err := Open(p).MayFound("a", "1"); !errors.Is(err, ErrUnreadable) {
		t.Errorf("of a page that cannot be read: %v", err)
	}
	if err := Open(nil).MayFound("a", "1"); err != nil {
		t.Errorf("without a keeper: %v", err)
	}
}

func TestLivesAreChained(t *testing.T) {
	p := &page{}
	b := Open(p)
	must(t, b.Founded(map[string]string{"a": "1"}, []Server{{"a", "a:1"}}, when))
	must(t, b.Follow("", nil))
	must(t, b.Follow("first", []Server{{"a", "a:1"}, {"b", "b:1"}}))
	must(t, b.Adopt("of the backup"))
	must(t, b.Adopt("first"))
	must(t, b.Follow("second", nil))
	b = Open(p)
	if got, want := b.FormerLives("second"), []string{"of the backup", "first"}; !slices.Equal(got, want) {
		t.Errorf("second comes of %q, want %q", got, want)
	}
	// Data of the first life that were put back do not come of the second.
	must(t, b.Follow("first", []Server{{"old", "old:1"}}))
	if got := b.FormerLives("first"); got != nil || b.FormerLives("second") == nil {
		t.Errorf("first comes of %q now", got)
	}
	if got := b.Servers(); len(got) != 2 {
		t.Errorf("servers %v", got)
	}
	for i := range 2 * formerLivesMax {
		must(t, b.Follow(fmt.Sprint(i), nil))
	}
	if got := b.FormerLives(fmt.Sprint(2*formerLivesMax - 1)); len(got) != formerLivesMax || got[formerLivesMax-1] != fmt.Sprint(2*formerLivesMax-2) {
		t.Errorf("%d former lives: %q", len(got), got)
	}
}

// TestOldDataGetARecord: of a server that was founded by a release without records.
func TestOldDataGetARecord(t *testing.T) {
	p := &page{}
	must(t, Open(p).Follow("", []Server{{"a", "a:1"}}))
	if err := Open(p).MayFound("a", "1"); !errors.Is(err, ErrBefore) {
		t.Errorf("it may be founded anew: %v", err)
	}
}

// TestWhatCannotBeWrittenIsAnError, and not remembered as if it were.
func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	full := errors.New("read-only file system")
	b := Open(&page{fail: full})
	if err := b.Founded(map[string]string{"a": "1"}, nil, when); !errors.Is(err, full) || b.Kept() {
		t.Errorf("%v, kept: %v", err, b.Kept())
	}
	if err := b.Follow("life", nil); !errors.Is(err, full) || b.Kept() {
		t.Errorf("%v, kept: %v", err, b.Kept())
	}
}
