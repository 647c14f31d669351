package trust

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"
)

const (
	fileEncryption    = "encryption.yaml"
	encryptionPurpose = "setpoint-encryption-at-rest"
	// EncryptionKeyBytes is the length of the key by which Secrets are encrypted.
	EncryptionKeyBytes = 32
	keyNameBytes       = 4
)

// EncryptionFile is the cluster's own EncryptionConfiguration, kept beside the
// authority's key and never beside what it encrypts; "" if no folder keeps the cluster's material.
func (c *Cluster) EncryptionFile() string {
	if c.inMemory() {
		return ""
	}
	return c.path(fileEncryption)
}

// EncryptionKey is the first key by which the cluster encrypts Secrets: it follows from
// the key of the cluster's first authority, so a trust folder from before there was such a file has it too, the
// same on all servers. Once the file exists, it says which keys there are, and another
// authority changes nothing. The name tells keys of different clusters apart.
func (ca *CA) EncryptionKey() (name string, key [EncryptionKeyBytes]byte, err error) {
	secret, err := ca.founding.key.Bytes()
	if err != nil {
		return "", key, fmt.Errorf("encryption key: %w", err)
	}
	derived, err := hkdf.Key(sha256.New, secret, nil, encryptionPurpose, len(key))
	if err != nil {
		return "", key, fmt.Errorf("encryption key: %w", err)
	}
	copy(key[:], derived)
	return encryptionKeyName(key), key, nil
}

// newEncryptionConfig is the text of a fresh EncryptionFile.
func (c *Cluster) newEncryptionConfig() ([]byte, error) {
	name, key, err := c.CA.EncryptionKey()
	if err != nil {
		return nil, err
	}
	return encryptionFileOf([]StorageKey{{name, key}})
}
