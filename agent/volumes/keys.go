package volumes

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"fmt"
)

// keyTypes are those of a PodCertificateProjection (KEP-4317).
var keyTypes = map[string]func() (crypto.Signer, error){
	"RSA3072":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 3072) },
	"RSA4096":   func() (crypto.Signer, error) { return rsa.GenerateKey(rand.Reader, 4096) },
	"ECDSAP256": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P256(), rand.Reader) },
	"ECDSAP384": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P384(), rand.Reader) },
	"ECDSAP521": func() (crypto.Signer, error) { return ecdsa.GenerateKey(elliptic.P521(), rand.Reader) },
	"ED25519": func() (crypto.Signer, error) {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return key, err
	},
}

// keyAndProof makes a private key, in PEM, and an otherwise empty PKCS #10 request that it signed.
func keyAndProof(keyType string) (keyPEM, stub []byte, err error) {
	generate, ok := keyTypes[keyType]
	if !ok {
		return nil, nil, fmt.Errorf("unknown key type %q", keyType)
	}
	key, err := generate()
	if err != nil {
		return nil, nil, fmt.Errorf("generate a key of type %s: %w", keyType, err)
	}
	if stub, err = x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{}, key); err != nil {
		return nil, nil, fmt.Errorf("make a PKCS #10 request: %w", err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, nil, fmt.Errorf("encode a private key: %w", err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), stub, nil
}
