package rotations

import (
	"errors"
	"fmt"
	"slices"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

var errLacks = errors.New("it lacks the key")

// Ring is a secret of which there may be several values for a while; the first one of IDs is used, all are trusted.
type Ring interface {
	Add(text []byte) (id string, err error)
	Use(id string) error
	Drop(id string) error
	IDs() []string
	// Text is what Add would take.
	Text(id string) ([]byte, error)
}

// KeyRing is the Mechanism of a Ring. Make makes the text of a value, and says what it will be called. Changed, if not nil, hands the
// values to who uses a copy of them.
type KeyRing struct {
	Ring    Ring
	Make    func() (text []byte, id string, err error)
	Changed func() error
	// WasDropped, if not nil, reports whether a value was dropped for all time.
	WasDropped func(id string) bool
}

// Dropped implements Forgetter.
func (k KeyRing) Dropped(fingerprint string) bool {
	return k.WasDropped != nil && k.WasDropped(fingerprint)
}

// Held implements Mechanism.
func (k KeyRing) Held() (uses string, trusts []string) {
	ids := k.Ring.IDs()
	if len(ids) == 0 {
		return "", nil
	}
	return ids[0], ids
}

// New implements Mechanism.
func (k KeyRing) New() (key []byte, fingerprint string, err error) { return k.Make() }

// Key implements Mechanism.
func (k KeyRing) Key(fingerprint string) []byte {
	text, err := k.Ring.Text(fingerprint)
	if err != nil {
		return nil
	}
	return text
}

// Follow implements Mechanism: what is wanted is added, then used, and only then the rest goes. Where nothing can be added,
// strangers that are not used go before.
func (k KeyRing) Follow(s rotation.State, keys rotation.Keys) error {
	err := k.follow(s, keys)
	if k.Changed != nil {
		err = errors.Join(err, k.Changed())
	}
	return err
}

func (k KeyRing) follow(s rotation.State, keys rotation.Keys) error {
	uses, trusts := s.Wanted()
	for _, id := range trusts {
		err := k.add(id, keys[id])
		if errors.Is(err, trust.ErrTooManyKeys) {
			if err = k.makeRoom(trusts); err == nil {
				err = k.add(id, keys[id])
			}
		}
		if err != nil {
			return err
		}
	}
	if used, _ := k.Held(); used != uses {
		if err := k.Ring.Use(uses); err != nil {
			return err
		}
	}
	for _, id := range k.Ring.IDs() {
		if slices.Contains(trusts, id) {
			continue
		}
		if err := k.Ring.Drop(id); err != nil {
			return err
		}
	}
	return nil
}

// makeRoom drops what is neither wanted nor used.
func (k KeyRing) makeRoom(wanted []string) error {
	for i, id := range k.Ring.IDs() {
		if i == 0 || slices.Contains(wanted, id) {
			continue
		}
		if err := k.Ring.Drop(id); err != nil {
			return err
		}
	}
	return nil
}

func (k KeyRing) add(id string, text []byte) error {
	switch {
	case slices.Contains(k.Ring.IDs(), id):
		return nil
	case len(text) == 0:
		return fmt.Errorf("%w %s", errLacks, id)
	}
	_, err := k.Ring.Add(text)
	return err
}
