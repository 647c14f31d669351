package trust

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"

	"github.com/setpoint-io/setpoint/internal/trust/tokens"
)

// Seal returns a proof that a holder of the authority's key, which only servers are, has written text for a purpose.
// tokens.SameSecret compares two of them.
func (ca *CA) Seal(purpose string, text []byte) ([]byte, error) {
	return ca.signing().seal(purpose, text)
}

// HasSealed reports whether a holder of the key of one of the authorities that are believed has made the proof.
func (ca *CA) HasSealed(purpose string, text, proof []byte, encoded func([]byte) []byte) bool {
	for _, a := range ca.current().all {
		if sum, err := a.seal(purpose, text); err == nil && tokens.SameSecret(encoded(sum), proof) {
			return true
		}
	}
	return false
}

func (a *Authority) seal(purpose string, text []byte) ([]byte, error) {
	secret, err := a.key.Bytes()
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	key, err := hkdf.Key(sha256.New, secret, nil, "setpoint-seal "+purpose, keyBytes)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	mac := hmac.New(sha256.New, key)
	mac.Write(text)
	return mac.Sum(nil), nil
}
