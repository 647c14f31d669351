package trust

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// ringKeysMax is how many values of one secret a cluster has at most: one in use, one to come, and some that are still believed.
const ringKeysMax = 4

var (
	// ErrNoKey says that a ring lacks the value that it is told to use.
	ErrNoKey = errors.New("it is not among them: add it first")
	// ErrKeyInUse says that a ring uses the value that it is told to drop.
	ErrKeyInUse = errors.New("it is in use: use another one first")
	// ErrTooManyKeys says that a ring is full.
	ErrTooManyKeys = fmt.Errorf("there are %d already: drop one first", ringKeysMax)
)

// ringKey is one value of a secret.
type ringKey interface{ ID() string }

// Ring is a secret of which a cluster may have several values for a while: all are believed, and one of them is used. To replace it, every
// server adds the new value, then every server uses it, then every server drops the old one. Each step may be repeated: it changes nothing
// the second time. Its file is replaced as a whole, so after a crash a step was taken or not. Connections and requests read it while it
// changes: it is safe for concurrent use.
type Ring[K ringKey] struct {
	form ringForm[K]
	// file keeps the values; "": they end with the process. plainFile, if not "", keeps the one in use in an older form: it stands for a
	// file that is not there yet, and is written after it.
	file, plainFile string
	// mu keeps one change from another; now never points to an empty list, nor does the list change.
	mu  sync.Mutex
	now atomic.Pointer[[]K]
}

// ringForm is how values of a kind are written.
type ringForm[K ringKey] struct {
	what string
	// parse reads all of a file; encode writes it. rotated: another value than the first was used before.
	parse  func(text []byte) (keys []K, rotated bool, err error)
	encode func(keys []K, rotated bool) ([]byte, error)
	// changed, if not nil, is told of the values that are held now, with the ring's mu held.
	changed func(keys []K)
	// more says whether there is more in a text than the one value that was read; nil: parse would have failed. plain writes the older form.
	more  func(text []byte) bool
	plain func(K) []byte
}

// ringOf begins with the text of a file.
func ringOf[K ringKey](form ringForm[K], file string, text []byte) (*Ring[K], error) {
	keys, _, err := form.parse(text)
	if err != nil {
		return nil, err
	}
	r := &Ring[K]{form: form, file: file}
	r.now.Store(&keys)
	return r, nil
}

// copied is another ring with the values of now, which end with the process.
func (r *Ring[K]) copied() *Ring[K] {
	other := &Ring[K]{form: r.form}
	other.now.Store(r.Now())
	return other
}

// Now are the values; the first one is used. Nobody changes them: another list, which Now returns then, has another pointer.
func (r *Ring[K]) Now() *[]K { return r.now.Load() }

// Used is the value in use.
func (r *Ring[K]) Used() K { return (*r.Now())[0] }

// IDs are what the values are called; the first one is used.
func (r *Ring[K]) IDs() (ids []string) {
	for _, key := range *r.Now() {
		ids = append(ids, key.ID())
	}
	return ids
}

// Text is the text of a value, as Add takes it, or fails with ErrNoKey: it is secret.
func (r *Ring[K]) Text(id string) ([]byte, error) {
	for _, key := range *r.Now() {
		switch {
		case key.ID() != id:
		case r.form.plain != nil:
			return r.form.plain(key), nil
		default:
			return r.form.encode([]K{key}, false)
		}
	}
	return nil, ErrNoKey
}

// Add believes a further value, whose text New of its kind has made, and returns what it is called: no secret.
func (r *Ring[K]) Add(text []byte) (id string, err error) {
	added, _, err := r.form.parse(text)
	if err != nil {
		return "", err
	}
	if len(added) != 1 || r.form.more != nil && r.form.more(text) {
		return "", fmt.Errorf("add a %s: there is more in the text, want one", r.form.what)
	}
	return added[0].ID(), r.change("add", added[0].ID(), func(keys []K, at int) ([]K, bool, error) {
		switch {
		case at >= 0:
			return keys, false, nil
		case len(keys) >= ringKeysMax:
			return nil, false, ErrTooManyKeys
		}
		return append(keys, added[0]), false, nil
	})
}

// Use uses a value that was added, or fails with ErrNoKey.
func (r *Ring[K]) Use(id string) error {
	return r.change("use", id, func(keys []K, at int) ([]K, bool, error) {
		if at < 0 {
			return nil, false, ErrNoKey
		}
		used := keys[at]
		return slices.Insert(slices.Delete(keys, at, at+1), 0, used), at > 0, nil
	})
}

// Drop forgets a value, or fails with ErrKeyInUse.
func (r *Ring[K]) Drop(id string) error {
	return r.change("drop", id, func(keys []K, at int) ([]K, bool, error) {
		switch {
		case at == 0:
			return nil, false, ErrKeyInUse
		case at < 0:
			return keys, false, nil
		}
		return slices.Delete(keys, at, at+1), false, nil
	})
}

// change reads the values as they are in the file, since another server may share it, and replaces them by what next makes of a copy. at is
// where the one with the id is, -1 if it is not there. uses says that another one than before is used.
func (r *Ring[K]) change(step, id string, next func(keys []K, at int) (after []K, uses bool, err error)) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before, rotated, err := r.read()
	if err != nil {
		return fmt.Errorf("%s a %s: %w", step, r.form.what, err)
	}
	at := slices.IndexFunc(before, func(key K) bool { return key.ID() == id })
	after, uses, err := next(slices.Clone(before), at)
	if err != nil {
		return fmt.Errorf("%s the %s %q: %w", step, r.form.what, id, err)
	}
	if err := r.save(before, after, (rotated || uses) && len(after) > 1); err != nil {
		return fmt.Errorf("%s the %s %q: %w", step, r.form.what, id, err)
	}
	if !sameKeys(*r.Now(), after) {
		r.hold(after)
	}
	return nil
}

// hold makes others see the values from now on.
func (r *Ring[K]) hold(keys []K) {
	r.now.Store(&keys)
	if r.form.changed != nil {
		r.form.changed(keys)
	}
}

func (r *Ring[K]) read() ([]K, bool, error) {
	if r.file == "" {
		return *r.Now(), false, nil
	}
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) && r.plainFile != "" {
		text, err = os.ReadFile(r.plainFile)
	}
	if err != nil {
		return nil, false, err
	}
	return r.form.parse(text)
}

func (r *Ring[K]) save(before, after []K, rotated bool) error {
	if sameKeys(before, after) && r.plainFits(after[0]) {
		return nil
	}
	return r.write(after, rotated)
}

// plainFits reports whether the older form has the key in use: after a crash, or a disk that was full between the two files, it has not.
func (r *Ring[K]) plainFits(used K) bool {
	if r.plainFile == "" {
		return true
	}
	text, err := os.ReadFile(r.plainFile)
	return err == nil && bytes.Equal(bytes.TrimSpace(text), bytes.TrimSpace(r.form.plain(used)))
}

// write replaces the files; mu is held.
func (r *Ring[K]) write(keys []K, rotated bool) error {
	if r.file == "" {
		return nil
	}
	text, err := r.form.encode(keys, rotated)
	if err != nil {
		return err
	}
	if err := secretfile.Write(r.file, text, secretfile.Secret); err != nil || r.plainFile == "" {
		return err
	}
	return secretfile.Write(r.plainFile, r.form.plain(keys[0]), secretfile.Secret)
}

func sameKeys[K ringKey](a, b []K) bool {
	return slices.EqualFunc(a, b, func(x, y K) bool { return x.ID() == y.ID() })
}
