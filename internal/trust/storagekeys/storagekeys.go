package storagekeys

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

// KeyBytes is the length of a key, nameBytes how much of its hash is its name.
const (
	KeyBytes  = 32
	nameBytes = 4
)

// keysMax is how many keys encryption.yaml has at most: the one in use, one to come, and those that somebody has added to read
// an older backup with.
const keysMax = 16

var (
	// ErrOwnFile says that somebody has written more into encryption.yaml than keys.
	ErrOwnFile = errors.New("pki/encryption.yaml says more than which keys of secretbox encrypt Secrets")
	errKey     = errors.New("not a key that encrypts what is stored")
)

// Key is a key that encrypts what is stored.
type Key struct {
	// Name stands before each value that it has encrypted.
	Name   string
	Secret [KeyBytes]byte
}

// ID is its name if servers have made it, and otherwise the name with a hash of the secret: it tells nothing of that.
func (k Key) ID() string {
	if made := MadeName(k.Secret); k.Name != made {
		return k.Name + "=" + made
	}
	return k.Name
}

// NameOf is the name of a key with the ID.
func NameOf(id string) string {
	if at := strings.LastIndex(id, "="); at >= 0 {
		return id[:at]
	}
	return id
}

// String is its ID: it is printed without its secret.
func (k Key) String() string { return k.ID() }

// GoString is its ID.
func (k Key) GoString() string { return k.ID() }

// MadeName is the name of a key that servers have made.
func MadeName(secret [KeyBytes]byte) string {
	sum := sha256.Sum256(secret[:])
	return "key-" + hex.EncodeToString(sum[:nameBytes])
}

// writtenKey is a key in a file or in the state of a rotation.
type writtenKey struct {
	Name   string `json:"name"`
	Secret string `json:"secret"`
}

func (k Key) written() writtenKey {
	return writtenKey{k.Name, base64.StdEncoding.EncodeToString(k.Secret[:])}
}

func (w writtenKey) key() (k Key, err error) {
	secret, err := base64.StdEncoding.DecodeString(w.Secret)
	if err != nil || len(secret) != KeyBytes || w.Name == "" || strings.Contains(w.Name, ":") {
		return k, errKey // the decoder's error may repeat a part of the text
	}
	k.Name = w.Name
	copy(k.Secret[:], secret)
	return k, nil
}

// Make makes the text of a key, and what it will be called.
func Make() (text []byte, id string, err error) {
	k := Key{}
	if _, err := rand.Read(k.Secret[:]); err != nil {
		return nil, "", fmt.Errorf("encryption key: %w", err)
	}
	k.Name = MadeName(k.Secret)
	text, err = k.Text()
	return text, k.ID(), err
}

// Text is what Parse reads: it is secret.
func (k Key) Text() ([]byte, error) { return json.Marshal(k.written()) }

// Parse reads the text of a key.
func Parse(text []byte) (Key, error) {
	var w writtenKey
	if err := json.Unmarshal(text, &w); err != nil {
		return Key{}, errKey
	}
	return w.key()
}

// Keys are the keys by which the cluster encrypts what it stores; the first one encrypts, all decrypt. They are in
// encryption.yaml, which is replaced as a whole; in a cluster that no folder keeps they end with the process. They are safe for
// concurrent use.
type Keys struct {
	file  string
	first Key
	mu    sync.Mutex
	// memory has them if there is no file.
	memory []Key
}

// New are the keys in a file, "" for memory alone; first is the one while there is no file.
func New(file string, first Key) *Keys {
	return &Keys{file: file, first: first, memory: []Key{first}}
}

// Copied are other ones that begin with the keys of now; nil of nil.
func (k *Keys) Copied() *Keys {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return &Keys{first: k.first, memory: slices.Clone(k.memory)}
}

// Now are the keys at this moment, or ErrOwnFile. Servers may share the file, and people change it.
func (k *Keys) Now() ([]Key, error) {
	if k.file == "" {
		k.mu.Lock()
		defer k.mu.Unlock()
		return slices.Clone(k.memory), nil
	}
	text, err := os.ReadFile(k.file)
	if errors.Is(err, fs.ErrNotExist) {
		return []Key{k.first}, nil
	}
	if err != nil {
		return nil, err
	}
	return parseFile(text)
}

// Replace makes these the keys.
func (k *Keys) Replace(keys []Key) error {
	if len(keys) == 0 || len(keys) > keysMax {
		return fmt.Errorf("encryption keys: %d, want 1 to %d: remove from pki/encryption.yaml those that no backup needs", len(keys), keysMax)
	}
	for i, key := range keys {
		if slices.ContainsFunc(keys[:i], func(other Key) bool { return other.Name == key.Name }) {
			return fmt.Errorf("encryption keys: two of them are called %s: give one that servers have not made another name", key.Name)
		}
	}
	text, err := FileOf(keys)
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

// file is what servers write: upstream's EncryptionConfiguration.
type file struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Resources  []rule `json:"resources"`
}

type rule struct {
	Resources []string   `json:"resources"`
	Providers []provider `json:"providers"`
}

type provider struct {
	Secretbox *box      `json:"secretbox,omitempty"`
	Identity  *struct{} `json:"identity,omitempty"`
}

type box struct {
	Keys []writtenKey `json:"keys"`
}

// FileOf is the text of a file with these keys: a secret.
func FileOf(keys []Key) ([]byte, error) {
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

// parseFile reads what FileOf has written, and nothing else: what it did not understand would be lost with the next
// change.
func parseFile(text []byte) (keys []Key, err error) {
	var read file
	if err := yaml.UnmarshalStrict(text, &read); err != nil || len(read.Resources) != 1 {
		return nil, ErrOwnFile
	}
	only := read.Resources[0]
	if !slices.Equal(only.Resources, []string{"secrets"}) || len(only.Providers) != 2 ||
		only.Providers[0].Secretbox == nil || only.Providers[0].Identity != nil ||
		only.Providers[1].Secretbox != nil || only.Providers[1].Identity == nil {
		return nil, ErrOwnFile
	}
	for _, written := range only.Providers[0].Secretbox.Keys {
		key, err := written.key()
		if err != nil {
			return nil, ErrOwnFile
		}
		if slices.ContainsFunc(keys, func(other Key) bool { return other.Name == key.Name }) {
			return nil, ErrOwnFile
		}
		keys = append(keys, key)
	}
	if len(keys) == 0 {
		return nil, ErrOwnFile
	}
	return keys, nil
}
