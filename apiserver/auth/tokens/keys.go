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

// Keys sign and check tokens. The first one signs; further ones are those of
// former days, whose tokens are still good. They are safe for concurrent use.
type Keys struct {
	signer jose.Signer
	public jose.JSONWebKeySet
}

// NewKeys returns the keys of a cluster: signing is its current one.
func NewKeys(signing *ecdsa.PrivateKey, former ...*ecdsa.PublicKey) (*Keys, error) {
	keys := &Keys{}
	for _, public := range append([]*ecdsa.PublicKey{&signing.PublicKey}, former...) {
		id, err := keyID(public)
		if err != nil {
			return nil, err
		}
		keys.public.Keys = append(keys.public.Keys, jose.JSONWebKey{Key: public, KeyID: id, Algorithm: string(algorithm), Use: "sig"})
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

// keyID names a key by its hash, as upstream does.
func keyID(public *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}
