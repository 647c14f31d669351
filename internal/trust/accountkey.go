package trust

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"fmt"
)

// A file has several keys only if a block of ours says so: without one the first key counts alone, whatever people have put behind it.
// Versions that know one key alone read the first block of a file: they go on with the key in use as long as another was only added, and
// after that refuse to start, where they would refuse what the other key has signed.
const (
	// blockRotated stands before the keys once another one than before is used.
	blockRotated = "SETPOINT KEYS IN ROTATION"
	// blockAdded stands behind the first key, before those that were added and not used yet.
	blockAdded = "SETPOINT KEYS ADDED"
)

// AccountKey signs tokens of service accounts.
type AccountKey struct {
	*ecdsa.PrivateKey
	id string
}

// ID is what tokens and the published key set call the key ("kid"): a hash, as upstream's.
func (k AccountKey) ID() string { return k.id }

// NewAccountKey makes the text of a key, for Cluster.AccountKeys.Add.
func NewAccountKey() ([]byte, error) { return NewKey() }

// MakeAccountKey is NewAccountKey, and how the key will be called.
func MakeAccountKey() (text []byte, id string, err error) {
	if text, err = NewAccountKey(); err != nil {
		return nil, "", err
	}
	keys, _, err := parseAccountKeys(text)
	if err != nil {
		return nil, "", err
	}
	return text, keys[0].ID(), nil
}

var accountKeyForm = ringForm[AccountKey]{what: "service account key", parse: parseAccountKeys, encode: encodeAccountKeys, more: moreThanOneBlock}

func moreThanOneBlock(text []byte) bool {
	_, rest := pem.Decode(text)
	return len(bytes.TrimSpace(rest)) > 0
}

func parseAccountKeys(text []byte) (keys []AccountKey, rotated bool, err error) {
	private, rotated, err := parseKeys(text)
	if err != nil {
		return nil, false, fmt.Errorf("service account key: %w", err)
	}
	for _, key := range private {
		id, err := accountKeyID(&key.PublicKey)
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, AccountKey{PrivateKey: key, id: id})
	}
	return keys, rotated, nil
}

func encodeAccountKeys(keys []AccountKey, rotated bool) ([]byte, error) {
	var private []*ecdsa.PrivateKey
	for _, key := range keys {
		private = append(private, key.PrivateKey)
	}
	return encodeKeys(private, rotated)
}

// accountKeyID names a key by its hash, as upstream does.
func accountKeyID(public *ecdsa.PublicKey) (string, error) {
	der, err := x509.MarshalPKIXPublicKey(public)
	if err != nil {
		return "", fmt.Errorf("service account key: %w", err)
	}
	sum := sha256.Sum256(der)
	return base64.RawURLEncoding.EncodeToString(sum[:]), nil
}

// parseKeys reads the keys of a file that are the cluster's.
func parseKeys(text []byte) (keys []*ecdsa.PrivateKey, rotated bool, err error) {
	several := false
	for rest := text; len(bytes.TrimSpace(rest)) > 0; {
		block, after := pem.Decode(rest)
		if block == nil {
			break
		}
		rest = after
		switch {
		case block.Type == blockRotated && len(keys) == 0:
			several, rotated = true, true
			continue
		case block.Type == blockAdded && len(keys) == 1 && !several:
			several = true
			continue
		case len(keys) > 0 && (block.Type != blockKey || !several): // what stands behind the keys, which nobody ever read
			return keys, rotated, nil
		}
		key, err := parseKey(pem.EncodeToMemory(block))
		if err != nil {
			return nil, false, err
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, false, fmt.Errorf("%w: %s", ErrBadPEM, blockKey)
	}
	return keys, rotated, nil
}

func encodeKeys(keys []*ecdsa.PrivateKey, rotated bool) (text []byte, err error) {
	if rotated {
		text = pem.EncodeToMemory(&pem.Block{Type: blockRotated})
	}
	for i, key := range keys {
		if i == 1 && !rotated {
			text = append(text, pem.EncodeToMemory(&pem.Block{Type: blockAdded})...)
		}
		block, err := encodeKey(key)
		if err != nil {
			return nil, err
		}
		text = append(text, block...)
	}
	return text, nil
}
