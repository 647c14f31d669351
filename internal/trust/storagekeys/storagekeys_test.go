package storagekeys

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func makeKey(t *testing.T) Key {
	t.Helper()
	text, id, err := Make()
	if err != nil {
		t.Fatal(err)
	}
	key, err := Parse(text)
	if err != nil || key.ID() != id || key.Name != id || NameOf(id) != id {
		t.Fatalf("%v, %v, want %s", key, err, id)
	}
	return key
}

func now(t *testing.T, keys *Keys) []Key {
	t.Helper()
	all, err := keys.Now()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestKeysInAFile: they are read as others have left them, keys with names of people too, and say nothing when they are printed.
func TestKeysInAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "encryption.yaml")
	begin := makeKey(t)
	keys := New(file, begin)
	first := now(t, keys)
	if len(first) != 1 || first[0] != begin {
		t.Errorf("at first: %v", first)
	}
	theirs := Key{Name: "theirs # a=b", Secret: [KeyBytes]byte{1}}
	if id := theirs.ID(); id == theirs.Name || NameOf(id) != theirs.Name {
		t.Errorf("%q", id)
	}
	want := []Key{makeKey(t), theirs, first[0]}
	if err := keys.Replace(want); err != nil {
		t.Fatal(err)
	}
	other := New(file, makeKey(t))
	if got := now(t, other); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", want, want[0], want[0], want[0]); strings.Contains(text, want[0].written().Secret) || strings.Contains(text, "[1 0") {
		t.Errorf("a secret is printed: %s", text)
	}
	if err := keys.Replace([]Key{{Name: "x", Secret: [32]byte{1}}, {Name: "x", Secret: [32]byte{2}}}); err == nil || !strings.Contains(err.Error(), "called x") {
		t.Errorf("two of one name: %v", err)
	}
	if got := now(t, keys); !slices.Equal(got, want) {
		t.Errorf("after what was refused: %v", got)
	}
	if err := keys.Replace(make([]Key, keysMax+1)); err == nil {
		t.Error("too many are taken")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if got := now(t, keys); !slices.Equal(got, first) {
		t.Errorf("without the file: %v", got)
	}
}

// TestKeysInMemory: a copy goes its own way.
func TestKeysInMemory(t *testing.T) {
	if (*Keys)(nil).Copied() != nil {
		t.Error("a copy has keys that nobody asked for")
	}
	keys := New("", makeKey(t))
	if err := keys.Replace([]Key{makeKey(t)}); err != nil {
		t.Fatal(err)
	}
	before := now(t, keys)
	copied := keys.Copied()
	if got := now(t, copied); !slices.Equal(got, before) {
		t.Errorf("the copy begins with %v, want %v", got, before)
	}
	if err := copied.Replace([]Key{makeKey(t), before[0]}); err != nil {
		t.Fatal(err)
	}
	if got := now(t, keys); !slices.Equal(got, before) {
		t.Errorf("a change of the copy changed the first: %v", got)
	}
}

// TestWhoseFile: what people have written more into the file is not lost by a rotation.
func TestWhoseFile(t *testing.T) {
	made, err := FileOf([]Key{{Name: "a"}, {Name: "b"}})
	if err != nil {
		t.Fatal(err)
	}
	text := string(made)
	for name, change := range map[string][2]string{
		"another kind":      {"[secrets]", "[secrets, configmaps]"},
		"another algorithm": {"secretbox", "aesgcm"},
		"nothing plain":     {"  - identity: {} # reads what is not encrypted yet\n", ""},
		"plain first":       {"  - secretbox", "  - identity: {}\n  - secretbox"},
		"another rule":      {"resources:\n", "resources:\n- resources: [configmaps]\n  providers:\n  - identity: {}\n"},
		"one name twice":    {"name: \"b\"", "name: \"a\""},
		"no name":           {"name: \"b\"", "name: \"\""},
		"a short secret":    {"secret: AAAA", "secret: "},
		"nonsense":          {"resources:", "resources"},
	} {
		changed := strings.Replace(text, change[0], change[1], 1)
		if changed == text {
			t.Errorf("%s: nothing is changed in %s", name, text)
		}
		if _, err := parseFile([]byte(changed)); !errors.Is(err, ErrOwnFile) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys, err := parseFile(made); err != nil || len(keys) != 2 {
		t.Errorf("%v, %v", keys, err)
	}
	if _, err := Parse([]byte("{")); err == nil {
		t.Error("nonsense is a key")
	}
}
