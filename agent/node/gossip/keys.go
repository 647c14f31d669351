package gossip

import (
	"bytes"
	"fmt"
	"slices"
)

// UseKeys has the pool encrypt with the first one from now on, and decrypt with these alone. Whatever is on its way with another key is
// lost; members send it again.
func (p *Pool) UseKeys(keys [][]byte) error {
	if p == nil {
		return nil
	}
	if err := validateKeys(keys); err != nil {
		return err
	}
	for _, key := range keys {
		if err := p.keys.AddKey(key); err != nil {
			return fmt.Errorf("gossip: %w", err)
		}
	}
	if err := p.keys.UseKey(keys[0]); err != nil {
		return fmt.Errorf("gossip: %w", err)
	}
	return p.dropOthers(keys)
}

// dropOthers removes all keys but those wanted. The library removes a key from a list that others may be reading, which is safe for the
// last one alone: those wanted come before, the one in use first again in the end. For that moment, well below a millisecond, another one
// of them encrypts: with a stranger in the list and a new key that not all members have yet, a message may be lost, and is sent again.
func (p *Pool) dropOthers(wanted [][]byte) error {
	others := slices.DeleteFunc(slices.Clone(p.keys.GetKeys()), func(key []byte) bool {
		return slices.ContainsFunc(wanted, func(w []byte) bool { return bytes.Equal(w, key) })
	})
	if len(others) == 0 {
		return nil
	}
	for _, key := range slices.Backward(wanted) {
		if err := p.keys.UseKey(key); err != nil {
			return fmt.Errorf("gossip: %w", err)
		}
	}
	for _, key := range slices.Backward(others) {
		if err := p.keys.RemoveKey(key); err != nil {
			return fmt.Errorf("gossip: %w", err)
		}
	}
	return nil
}

// validateKeys fails with ErrNoKey.
func validateKeys(keys [][]byte) error {
	if len(keys) == 0 {
		return ErrNoKey
	}
	for _, key := range keys {
		if len(key) != keyBytes {
			return fmt.Errorf("%w, not %d", ErrNoKey, len(key))
		}
	}
	return nil
}
