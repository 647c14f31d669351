package tokens

import (
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"fmt"

	"github.com/go-jose/go-jose/v4"
)

// algorithm is the only one in which tokens are signed and accepted.
const algorithm = jose.ES256

// Keys sign and check tokens. The first one signs; tokens of the others, former and future ones, are good too. They do not change: who
// rotates keys returns others from then on.
type Keys struct {
	signer jose.Signer
	public jose.JSONWebKeySet
	ids    map[string]bool // of public
}

// Now makes a function that always returns these keys.
func (k *Keys) Now() func() *Keys { return func() *Keys { return k } }

// NewKeys returns the keys of a cluster: signing is its current one.
func NewKeys(signing *ecdsa.PrivateKey, others ...*ecdsa.PublicKey) (*Keys, error) {
	keys := &Keys{ids: map[string]bool{}}
	for _, public := range append([]*ecdsa.PublicKey{&signing.PublicKey}, others...) {
		id, err := keyID(public)
		if err != nil {
			return nil, err
		}
		keys.public.Keys = append(keys.public.Keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: string(algorithm), Use: "sig"})
		keys.ids[id] = true
	}
	var err error
	keys.signer, err = jose.NewSigner(jose.SigningKey{
		Algorithm: algorithm,
		Key:       jose.JSONWebKey{Key: signing, KeyID: keys.public.Keys[0].KeyID},
	}, nil)
	if err != nil {
		return nil, fmt.Errorf("service account key: %w", err)
	}
	return keys, nil
}

// has reports whether a key is still among them.
func (k *Keys) has(id string) bool { return k.ids[id] }

// named are those that may have signed a token whose header names the key: all, if it names none.
func (k *Keys) named(id string) []jose.JSONWebKey {
	if id == "" {
		return k.public.Keys
	}
	return k.public.Key(id)
}

// keyID names a key by its hash, as upstream does.
func keyID(public *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
