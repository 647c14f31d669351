package trust

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
)

// Seal returns a proof that a holder of the authority's key, which only servers are, has written text for a purpose. SameSecret compares
// two of them.
func (ca *CA) Seal(purpose string, text []byte) ([]byte, error) {
	secret, err := ca.key.Bytes()
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
