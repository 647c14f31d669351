package trust

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func makeEncryptionKey(t *testing.T) StorageKey {
	t.Helper()
	text, id, err := MakeEncryptionKey()
	if err != nil {
		t.Fatal(err)
	}
	key, err := ParseEncryptionKey(text)
	if err != nil || key.ID() != id || key.Name != id || EncryptionKeyName(id) != id {
		t.Fatalf("%v, %v, want %s", key, err, id)
	}
	return key
}

// TestEncryptionKeysInAFile: they are read as others have left them, keys with names of people too, and say nothing when they are printed.
func TestEncryptionKeysInAFile(t *testing.T) {
	dir := t.TempDir()
	c := must[*Cluster](t)(InitCluster(dir, nil, time.Now()))
	keys := must[*EncryptionKeys](t)(c.EncryptionKeys())
	first := must[[]StorageKey](t)(keys.Now())
	if name, secret, _ := c.CA.EncryptionKey(); len(first) != 1 || first[0] != (StorageKey{name, secret}) {
		t.Errorf("at first: %v", first)
	}
	theirs := StorageKey{Name: "theirs # a=b", Secret: [EncryptionKeyBytes]byte{1}}
	if id := theirs.ID(); id == theirs.Name || EncryptionKeyName(id) != theirs.Name {
		t.Errorf("%q", id)
	}
	want := []StorageKey{makeEncryptionKey(t), theirs, first[0]}
	if err := keys.Replace(want); err != nil {
		t.Fatal(err)
	}
	other := must[*EncryptionKeys](t)(must[*Cluster](t)(LoadCluster(dir)).EncryptionKeys())
	if got := must[[]StorageKey](t)(other.Now()); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if text := fmt.Sprintf("%v %+v %#v %s", want, want[0], want[0], want[0]); strings.Contains(text, want[0].written().Secret) || strings.Contains(text, "[1 0") {
		t.Errorf("a secret is printed: %s", text)
	}
	if err := keys.Replace([]StorageKey{{Name: "x", Secret: [32]byte{1}}, {Name: "x", Secret: [32]byte{2}}}); err == nil || !strings.Contains(err.Error(), "called x") {
		t.Errorf("two of one name: %v", err)
	}
	if got := must[[]StorageKey](t)(keys.Now()); !slices.Equal(got, want) {
		t.Errorf("after what was refused: %v", got)
	}
	if err := keys.Replace(make([]StorageKey, encryptionKeysMax+1)); err == nil {
		t.Error("too many are taken")
	}
	if err := os.Remove(c.EncryptionFile()); err != nil {
		t.Fatal(err)
	}
	if got := must[[]StorageKey](t)(keys.Now()); !slices.Equal(got, first) {
		t.Errorf("without the file: %v", got)
	}
}

// TestEncryptionKeysInMemory: a copy goes its own way.
func TestEncryptionKeysInMemory(t *testing.T) {
	c := must[*Cluster](t)(NewCluster(time.Now()))
	if c.Copied().encryption != nil {
		t.Error("a copy has keys that nobody asked for")
	}
	keys := must[*EncryptionKeys](t)(c.EncryptionKeys())
	if err := keys.Replace([]StorageKey{makeEncryptionKey(t)}); err != nil {
		t.Fatal(err)
	}
	before := must[[]StorageKey](t)(keys.Now())
	copied := must[*EncryptionKeys](t)(c.Copied().EncryptionKeys())
	if got := must[[]StorageKey](t)(copied.Now()); !slices.Equal(got, before) {
		t.Errorf("the copy begins with %v, want %v", got, before)
	}
	if err := copied.Replace([]StorageKey{makeEncryptionKey(t), before[0]}); err != nil {
		t.Fatal(err)
	}
	if got := must[[]StorageKey](t)(keys.Now()); !slices.Equal(got, before) {
		t.Errorf("a change of the copy changed the first: %v", got)
	}
}

// TestWhoseEncryptionFile: what people have written more into the file is not lost by a rotation.
func TestWhoseEncryptionFile(t *testing.T) {
	made, err := encryptionFileOf([]StorageKey{{Name: "a"}, {Name: "b"}})
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
		if _, err := parseEncryptionFile([]byte(changed)); !errors.Is(err, ErrOwnEncryption) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if keys, err := parseEncryptionFile(made); err != nil || len(keys) != 2 {
		t.Errorf("%v, %v", keys, err)
	}
	if _, err := ParseEncryptionKey([]byte("{")); err == nil {
		t.Error("nonsense is a key")
	}
}
