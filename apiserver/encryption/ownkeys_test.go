package encryption

import (
	"context"
	"crypto/sha256"
	"errors"
	"strings"
	"testing"
)

func ownKey(name string) Key { return Key{name, sha256.Sum256([]byte(name))} }

// TestTheFirstKeyReadsForAllTime: what a backup from before the key was replaced has is read, and outdated; others are not read.
func TestTheFirstKeyReadsForAllTime(t *testing.T) {
	w := newWorld(t)
	before := seal(t, w.start(), secrets)
	w.write(w.config.OwnFile, rule("secrets", "secretbox", "other"))
	e := w.start()
	sealed := seal(t, e, secrets)
	if got := open(t, e, secrets, before); got != "outdated" {
		t.Errorf("of the first key: %s", got)
	}
	if got := open(t, e, secrets, sealed); got != "" || !strings.HasPrefix(string(sealed), secretboxPrefix+"other:") {
		t.Errorf("of the key in the file: %s, %q", got, sealed)
	}
	w.write(w.config.OwnFile, rule("secrets", "secretbox", "third"))
	if got := open(t, w.start(), secrets, sealed); got == "" || got == "outdated" {
		t.Error("a key that is gone still reads")
	}
}

// TestOwnKeysAreTakenAtOnce: without a file too; a list that cannot be read changes nothing.
func TestOwnKeysAreTakenAtOnce(t *testing.T) {
	w := newWorld(t)
	w.config.OwnFile = ""
	keys, broken := []Key{ownKey("a")}, error(nil)
	w.config.OwnKeys = func() ([]Key, error) { return keys, broken }
	e := w.start()
	before := seal(t, e, secrets)
	keys = []Key{ownKey("b"), ownKey("a")}
	if err := e.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := seal(t, e, secrets)
	if !strings.HasPrefix(string(after), prefixOf("b")) || open(t, e, secrets, before) != "outdated" || e.Generation() != 1 {
		t.Errorf("%q, in generation %d", after, e.Generation())
	}
	if got := e.OwnKeys(); len(got) != 2 || got[0].Name != "b" {
		t.Errorf("in force are %d", len(got))
	}
	broken = errors.New("the disk is gone")
	if err := e.Reload(t.Context()); !errors.Is(err, broken) || e.OwnKeys()[0].Name != "b" {
		t.Error(err)
	}
}

// TestNothingIsEncryptedBeforeItMay: with the cluster's own keys; what is stored is read, and a configuration of the administrator's
// waits for nothing.
func TestNothingIsEncryptedBeforeItMay(t *testing.T) {
	w := newWorld(t)
	sealed := seal(t, w.start(), secrets)
	notYet := errors.New("not yet")
	w.config.MayWrite = func(context.Context, Key) error { return notYet }
	e := w.start()
	if _, err := e.For(secrets).TransformToStorage(t.Context(), text, key); !errors.Is(err, notYet) {
		t.Errorf("written: %v", err)
	}
	if got := open(t, e, secrets, sealed); got != "" {
		t.Errorf("read: %s", got)
	}
	w.given(rule("secrets", "secretbox", "given"))
	if given := seal(t, w.start(), secrets); !strings.HasPrefix(string(given), prefixOf("given")) {
		t.Errorf("%q", given)
	}
}

// TestTheKeyIsChosenAfterTheWait: while a write waits, another key may have been put in force, and then it is asked for once more.
func TestTheKeyIsChosenAfterTheWait(t *testing.T) {
	w := newWorld(t)
	w.config.OwnFile = ""
	keys, asked, may := []Key{ownKey("b")}, make(chan string), make(chan struct{})
	w.config.OwnKeys = func() ([]Key, error) { return keys, nil }
	w.config.MayWrite = func(_ context.Context, with Key) error {
		asked <- with.Name
		<-may
		return nil
	}
	e := w.start()
	sealed := make(chan []byte)
	transformer := e.For(secrets)
	go func() {
		text, _ := transformer.TransformToStorage(t.Context(), text, key)
		sealed <- text
	}()
	if got := <-asked; got != "b" {
		t.Errorf("asked about %q", got)
	}
	keys = []Key{ownKey("c"), ownKey("b")}
	if err := e.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	may <- struct{}{}
	select {
	case got := <-asked:
		if got != "c" {
			t.Errorf("asked about %q", got)
		}
		may <- struct{}{}
	case got := <-sealed:
		t.Fatalf("not asked about the key of now: %q", got)
	}
	if got := <-sealed; !strings.HasPrefix(string(got), prefixOf("c")) {
		t.Errorf("%q", got)
	}
}

// TestAPassingErrorIsNoOtherFile: what could not be read just now is not read in another way.
func TestAPassingErrorIsNoOtherFile(t *testing.T) {
	w := newWorld(t)
	w.write(w.config.OwnFile, rule("secrets", "secretbox", "a"))
	keys, broken := []Key{ownKey("a")}, error(nil)
	w.config.OwnKeys = func() ([]Key, error) { return keys, broken }
	e := w.start()
	w.write(w.config.OwnFile, rule("secrets", "secretbox", "b", "a"))
	keys, broken = nil, errors.New("too many open files")
	if err := e.Reload(t.Context()); !errors.Is(err, broken) || len(e.OwnKeys()) != 1 {
		t.Errorf("%v, in force are %d", err, len(e.OwnKeys()))
	}
	broken = nil // it says more
	w.write(w.config.OwnFile, rule("secrets, configmaps", "secretbox", "b", "a"))
	if err := e.Reload(t.Context()); err != nil || len(e.OwnKeys()) != 0 || e.For(configMaps) == nil {
		t.Errorf("%v, in force are %d", err, len(e.OwnKeys()))
	}
}
