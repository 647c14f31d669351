package revocation

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ConfigMapName is the ConfigMap in kube-system that holds the list.
const ConfigMapName = "setpoint-revocations"

const (
	// EntriesMax is how many entries the list has at most: some 400 KB, and an object may have 1 MiB.
	EntriesMax = 1000
	// entryBytesMax is more than any entry has.
	entryBytesMax = 1 << 10
	// keyBytes of a hash tell the keys of entries apart.
	keyBytes = 16
)

var (
	// ErrFull says that the list has EntriesMax entries.
	ErrFull = fmt.Errorf("the list of what is revoked is full (%d entries): take out what is over with --undo, "+
		"such as machines whose certificates have ended", EntriesMax)
	errEntry = errors.New("not an entry of the list of what is revoked")
)

// Entry is one thing that is revoked.
type Entry struct {
	Target
	// At is when.
	At time.Time
}

// stored is an entry in the ConfigMap. Its fields are never renamed.
type stored struct {
	Target string    `json:"target"`
	Key    string    `json:"key,omitempty"`
	At     time.Time `json:"at"`
}

// DataKey is the key of a target in the ConfigMap: its kind, and a hash, since names have letters that keys may not have.
func (t Target) DataKey() string {
	sum := sha256.Sum256([]byte(t.String()))
	return t.Kind + "." + hex.EncodeToString(sum[:keyBytes])
}

// Text is the entry as it is stored.
func (e Entry) Text() string {
	text, _ := json.Marshal(stored{e.Kind + "/" + e.Name, e.Key, e.At.UTC().Truncate(time.Second)}) // of strings and a time
	return string(text)
}

// parseEntry reads what is stored under a key.
func parseEntry(key, text string) (Entry, error) {
	var s stored
	if len(text) > entryBytesMax {
		return Entry{}, fmt.Errorf("%w: %s has more than %d bytes", errEntry, key, entryBytesMax)
	}
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return Entry{}, fmt.Errorf("%w: %s: %w", errEntry, key, err)
	}
	target, err := ParseTarget(s.Target)
	if err != nil {
		return Entry{}, fmt.Errorf("%w: %s: %w", errEntry, key, err)
	}
	target.Key = s.Key
	if err := target.Validate(); err != nil || target.DataKey() != key {
		return Entry{}, fmt.Errorf("%w: %s is not the key of %q", errEntry, key, s.Target)
	}
	return Entry{Target: target, At: s.At}, nil
}

// Read reads the data of the ConfigMap, in the order of targets. An entry that cannot be read is left out, and is part of the error.
func Read(data map[string]string) (entries []Entry, err error) {
	var wrong []error
	for _, key := range slices.Sorted(maps.Keys(data)) {
		entry, err := parseEntry(key, data[key])
		if err != nil {
			wrong = append(wrong, err)
			continue
		}
		entries = append(entries, entry)
	}
	if len(data) > EntriesMax {
		wrong = append(wrong, ErrFull)
	}
	slices.SortFunc(entries, func(a, b Entry) int { return strings.Compare(a.String(), b.String()) })
	return entries, errors.Join(wrong...)
}
