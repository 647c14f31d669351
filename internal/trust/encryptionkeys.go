package trust

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

// encryptionKeysMax is how many keys encryption.yaml has at most: the one in use, one to come, and those that somebody has added to read
// an older backup with.
const encryptionKeysMax = 16

var (
	// ErrOwnEncryption says that somebody has written more into encryption.yaml than keys.
	ErrOwnEncryption = errors.New("pki/encryption.yaml says more than which keys of secretbox encrypt Secrets")
	errEncryptionKey = errors.New("not a key that encrypts what is stored")
)

// StorageKey is a key that encrypts what is stored.
type StorageKey struct {
	// Name stands before each value that it has encrypted.
	Name   string
	Secret [EncryptionKeyBytes]byte
}

// ID is its name if servers have made it, and otherwise the name with a hash of the secret: it tells nothing of that.
func (k StorageKey) ID() string {
	if made := encryptionKeyName(k.Secret); k.Name != made {
		return k.Name + "=" + made
	}
	return k.Name
}

// EncryptionKeyName is the name of a key with the ID.
func EncryptionKeyName(id string) string {
	if at := strings.LastIndex(id, "="); at >= 0 {
		return id[:at]
	}
	return id
}

// String is its ID: it is printed without its secret.
func (k StorageKey) String() string { return k.ID() }

// GoString is its ID.
func (k StorageKey) GoString() string { return k.ID() }

func encryptionKeyName(secret [EncryptionKeyBytes]byte) string {
	sum := sha256.Sum256(secret[:])
	return "key-" + hex.EncodeToString(sum[:keyNameBytes])
}

// writtenKey is a key in a file or in the state of a rotation.
type writtenKey struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

func (k StorageKey) written() writtenKey {
	return writtenKey{k.Name, base64.StdEncoding.EncodeToString(k.Secret[:])}
}

func (w writtenKey) key() (k StorageKey, err error) {
	secret, err := base64.StdEncoding.DecodeString(w.Secret)
	if err != nil || len(secret) != EncryptionKeyBytes || w.Name == "" || strings.Contains(w.Name, ":") {
		return k, errEncryptionKey // the decoder's error may repeat a part of the text
	}
	k.Name = w.Name
	copy(k.Secret[:], secret)
	return k, nil
}

// MakeEncryptionKey makes the text of a key, and what it will be called.
func MakeEncryptionKey() (text []byte, id string, err error) {
	k := StorageKey{}
	if _, err := rand.Read(k.Secret[:]); err != nil {
		return nil, "", fmt.Errorf("encryption key: %w", err)
	}
	k.Name = encryptionKeyName(k.Secret)
	text, err = k.Text()
	return text, k.ID(), err
}

// Text is what ParseEncryptionKey reads: it is secret.
func (k StorageKey) Text() ([]byte, error) { return json.Marshal(k.written()) }

// ParseEncryptionKey reads the text of a key.
func ParseEncryptionKey(text []byte) (StorageKey, error) {
	var w writtenKey
	if err := json.Unmarshal(text, &w); err != nil {
		return StorageKey{}, errEncryptionKey
	}
	return w.key()
}

// EncryptionKeys are the keys by which the cluster encrypts what it stores; the first one encrypts, all decrypt. They are in
// encryption.yaml, which is replaced as a whole; in a cluster that no folder keeps they end with the process. They are safe for
// concurrent use.
type EncryptionKeys struct {
	file  string
	first StorageKey
	mu    sync.Mutex
	// memory has them if there is no file.
	memory []StorageKey
}

// EncryptionKeys are the cluster's own.
func (c *Cluster) EncryptionKeys() (*EncryptionKeys, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.encryption == nil {
		name, secret, err := c.CA.EncryptionKey()
		if err != nil {
			return nil, err
		}
		first := StorageKey{name, secret}
		c.encryption = &EncryptionKeys{file: c.EncryptionFile(), first: first, memory: []StorageKey{first}}
	}
	return c.encryption, nil
}

// copied are other ones that begin with the keys of now; nil of nil.
func (k *EncryptionKeys) copied() *EncryptionKeys {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return &EncryptionKeys{first: k.first, memory: slices.Clone(k.memory)}
}

// Now are the keys at this moment, or ErrOwnEncryption. Servers may share the file, and people change it.
func (k *EncryptionKeys) Now() ([]StorageKey, error) {
	if k.file == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		return slices.Clone(k.memory), nil
	}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return []StorageKey{k.first}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseEncryptionFile(text)
}

// Replace makes these the keys.
func (k *EncryptionKeys) Replace(keys []StorageKey) error {
	if len(keys) == 0 || len(keys) > encryptionKeysMax {
		return fmt.Errorf("encryption keys: %d, want 1 to %d: remove from pki/encryption.yaml those that no backup needs", len(keys), encryptionKeysMax)
	}
	for i, key := range keys {
		if slices.ContainsFunc(keys[:i], func(other StorageKey) bool { return other.Name == key.Name }) {
			return fmt.Errorf("encryption keys: two of them are called %s: give one that servers have not made another name", key.Name)
		}
	}
	text, err := encryptionFileOf(keys)
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.memory = slices.Clone(keys)
	if k.file == "" {
		return nil
	}
	return secretfile.Write(k.file, text, secretfile.Secret)
}

// encryptionFile is what servers write: upstream's EncryptionConfiguration.
type encryptionFile struct {
	APIVersion string           `json:"apiVersion"`
	Kind       string           `json:"kind"`
	Resources  []encryptionRule `json:"resources"`
}

type encryptionRule struct {
	Resources []string             `json:"resources"`
	Providers []encryptionProvider `json:"providers"`
}

type encryptionProvider struct {
	Secretbox *encryptionBox `json:"secretbox,omitempty"`
	Identity  *struct{}      `json:"identity,omitempty"`
}

type encryptionBox struct {
	Keys []writtenKey `json:"keys"`
}

// encryptionFileOf is the text of the file.
func encryptionFileOf(keys []StorageKey) ([]byte, error) {
	text := []byte(`# How this cluster's servers encrypt what they store. The first key encrypts; the others
# are there to read with. It must be the same on all servers: docs/operations/access.md.
apiVersion: apiserver.config.k8s.io/v1
kind: EncryptionConfiguration
resources:
- resources: [secrets]
  providers:
  - secretbox:
      keys:
`)
	for _, k := range keys {
		name, err := json.Marshal(k.Name)
		if err != nil {
			return nil, err
		}
		if k.ID() == k.Name {
			name = []byte(k.Name)
		}
		text = fmt.Appendf(text, "      - name: %s\n        secret: %s\n", name, k.written().Secret)
	}
	return append(text, "  - identity: {} # reads what is not encrypted yet\n"...), nil
}

// parseEncryptionFile reads what encryptionFileOf has written, and nothing else: what it did not understand would be lost with the next
// change.
func parseEncryptionFile(text []byte) (keys []StorageKey, err error) {
	var file encryptionFile
	if err := yaml.UnmarshalStrict(text, &file); err != nil || len(file.Resources) != 1 {
		return nil, ErrOwnEncryption
	}
	rule := file.Resources[0]
	if !slices.Equal(rule.Resources, []string{"secrets"}) || len(rule.Providers) != 2 ||
		rule.Providers[0].Secretbox == nil || rule.Providers[0].Identity != nil ||
		rule.Providers[1].Secretbox != nil || rule.Providers[1].Identity == nil {
		return nil, ErrOwnEncryption
	}
	for _, written := range rule.Providers[0].Secretbox.Keys {
		key, err := written.key()
		if err != nil {
			return nil, ErrOwnEncryption
		}
		if slices.ContainsFunc(keys, func(other StorageKey) bool { return other.Name == key.Name }) {
			return nil, ErrOwnEncryption
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, ErrOwnEncryption
	}
	return keys, nil
}
