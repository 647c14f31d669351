package trust

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
)

// ErrLocked says that what is sealed was not sealed by a server of this cluster, for this purpose.
var ErrLocked = errors.New("it was not sealed by a server of this cluster")

// Locker encrypts so that only holders of the key of the authority that signs, which servers are, can read it. It reads what holders of
// another one that is believed have encrypted.
type Locker struct{ CA *CA }

// Lock encrypts text for a purpose, with bound beside it, which Unlock must be given to the letter.
func (l Locker) Lock(purpose string, text, bound []byte) ([]byte, error) {
	aead, err := locking(l.CA.signing(), purpose)
	if err != nil {
		return nil, err
	}
	nonce := make([]byte, aead.NonceSize())
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return aead.Seal(nonce, nonce, text, bound), nil
}

// Unlock is the text of Lock.
func (l Locker) Unlock(purpose string, sealed, bound []byte) ([]byte, error) {
	for _, a := range l.CA.current().all {
		aead, err := locking(a, purpose)
		if err != nil {
			return nil, err
		}
		text, err := unlock(aead, sealed, bound)
		if err == nil {
			return text, nil
		}
	}
	return nil, ErrLocked
}

func unlock(aead cipher.AEAD, sealed, bound []byte) ([]byte, error) {
	if len(sealed) < aead.NonceSize() {
		return nil, ErrLocked
	}
	text, err := aead.Open(nil, sealed[:aead.NonceSize()], sealed[aead.NonceSize():], bound)
	if err != nil {
		return nil, ErrLocked
	}
	return text, nil
}

func locking(a *Authority, purpose string) (cipher.AEAD, error) {
	secret, err := a.key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "setpoint-lock "+purpose, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	return cipher.NewGCM(block)
}
