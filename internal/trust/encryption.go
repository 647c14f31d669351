package trust

import (
	"crypto/hkdf"
	"crypto/sha256"
	"fmt"

	"github.com/setpoint-io/setpoint/internal/trust/storagekeys"
)

const (
	fileEncryption    = "encryption.yaml"
	encryptionPurpose = "setpoint-encryption-at-rest"
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
func (ca *CA) EncryptionKey() (name string, key [storagekeys.KeyBytes]byte, err error) {
	secret, err := ca.founding.key.Bytes()
	if err != nil {
		return "", key, fmt.Errorf("encryption key: %w", err)
	}
	derived, err := hkdf.Key(sha256.New, secret, nil, encryptionPurpose, len(key))
	if err != nil {
		return "", key, fmt.Errorf("encryption key: %w", err)
	}
	copy(key[:], derived)
	return storagekeys.MadeName(key), key, nil
}

// newEncryptionConfig is the text of a fresh EncryptionFile.
func (c *Cluster) newEncryptionConfig() ([]byte, error) {
	name, key, err := c.CA.EncryptionKey()
	if err != nil {
		return nil, err
	}
	return storagekeys.FileOf([]storagekeys.Key{{Name: name, Secret: key}})
}

// EncryptionKeys are the cluster's own.
func (c *Cluster) EncryptionKeys() (*storagekeys.Keys, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.encryption == nil {
		name, secret, err := c.CA.EncryptionKey()
		if err != nil {
			return nil, err
		}
		c.encryption = storagekeys.New(c.EncryptionFile(), storagekeys.Key{Name: name, Secret: secret})
	}
	return c.encryption, nil
}
