package numbers

import (
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/clip"
)

const (
	// FailingMax is how many failing keys of a loop are kept; of more, those that failed least often are not.
	FailingMax = 200
	// TellTries is how often a key fails in a row before its object gets an event, TellInterval how long it takes until
	// the next.
	TellTries    = 10
	TellInterval = time.Hour
	// errorBytesMax is how much of an error is kept.
	errorBytesMax = 300
)

// FailingKey is a key whose last pass failed.
type FailingKey struct {
	Key string `json:"key"`
	// Tries are how many passes in a row failed.
	Tries int `json:"tries"`
	// Next is when it is tried again; nil: when its object changes.
	Next *time.Time `json:"next,omitempty"`
	// Error is the last one, At when.
	Error string    `json:"error"`
	At    time.Time `json:"at"`

	told time.Time
}

type failing struct {
	keys map[string]FailingKey
	last *FailingKey // the last error, whether the key still fails or not
}

func (f *failing) add(now time.Time, key FailingKey) (tell bool) {
	f.last = &key
	before, known := f.keys[key.Key]
	key.told = before.told
	if key.Tries >= TellTries && (key.told.IsZero() || now.Sub(key.told) >= TellInterval) {
		key.told, tell = now, true
	}
	if f.keys == nil {
		f.keys = map[string]FailingKey{}
	}
	if known || len(f.keys) < FailingMax || f.makeRoom(key.Tries) {
		f.keys[key.Key] = key
		return tell
	}
	return false
}

// makeRoom forgets a key that failed less often, if there is one.
func (f *failing) makeRoom(tries int) bool {
	least := ""
	for name, key := range f.keys {
		if key.Tries < tries && (least == "" || key.Tries < f.keys[least].Tries) {
			least = name
		}
	}
	delete(f.keys, least)
	return least != ""
}

func (f *failing) remove(key string) { delete(f.keys, key) }

// sorted are the keys, those that failed most often first.
func (f *failing) sorted() []FailingKey {
	keys := make([]FailingKey, 0, len(f.keys))
	for _, key := range f.keys {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b FailingKey) int {
		if a.Tries != b.Tries {
			return b.Tries - a.Tries
		}
		return strings.Compare(a.Key, b.Key)
	})
	return keys
}

// inOneLine keeps the beginning of a text.
func inOneLine(text string) string {
	return clip.Text(strings.Join(strings.Fields(text), " "), errorBytesMax)
}
