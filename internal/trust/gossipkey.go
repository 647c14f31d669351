package trust

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/setpoint-io/setpoint/internal/trust/secretfile"
)

const (
	gossipKeyBytes = 32
	// gossipIDBytes is the length of what a key is called before hex, gossipLabelBytes that of a pool's label.
	gossipIDBytes    = 8
	gossipLabelBytes = 8
	// gossipLabelLettersMax bounds a label that somebody else says.
	gossipLabelLettersMax = 64
)

var errGossipKeys = fmt.Errorf("gossip keys: want a label and 1 to %d keys, each once", ringKeysMax)

// GossipKey encrypts and authenticates gossip.
type GossipKey struct {
	secret []byte
	id     string
}

// ID is what the key is called: a hash, which tells nothing of it.
func (k GossipKey) ID() string { return k.id }

// String is its ID: it is printed without its secret.
func (k GossipKey) String() string { return k.id }

// GossipKeys are the keys of a pool at one moment, as they are stored and handed to members that may have them: they are secret.
type GossipKeys struct {
	// Label keeps apart clusters that share a network. It follows from the cluster's first key, and stays when keys are replaced.
	Label string `json:"label"`
	// Keys are of 32 bytes each; the first one encrypts, all decrypt.
	Keys [][]byte `json:"keys"`
}

// String is the label and what the keys are called.
func (g GossipKeys) String() string { return fmt.Sprintf("%s%v", g.Label, g.IDs()) }

// GoString is String: they are printed without their secrets in each way.
func (g GossipKeys) GoString() string { return g.String() }

// LogValue is String.
func (g GossipKeys) LogValue() slog.Value { return slog.StringValue(g.String()) }

// validate fails unless a pool can be run with them.
func (g GossipKeys) validate() error {
	if len(g.Label) == 0 || len(g.Label) > gossipLabelLettersMax || len(g.Keys) == 0 || len(g.Keys) > ringKeysMax {
		return errGossipKeys
	}
	for i, key := range g.Keys {
		if len(key) != gossipKeyBytes {
			return fmt.Errorf("gossip key: %d bytes, want %d", len(key), gossipKeyBytes)
		}
		if slices.ContainsFunc(g.Keys[:i], func(other []byte) bool { return bytes.Equal(other, key) }) {
			return errGossipKeys
		}
	}
	return nil
}

// IDs are what the keys are called.
func (g GossipKeys) IDs() (ids []string) {
	for _, key := range g.Keys {
		ids = append(ids, gossipKeyOf(key).id)
	}
	return ids
}

func (g GossipKeys) ring() (keys []GossipKey) {
	for _, key := range g.Keys {
		keys = append(keys, gossipKeyOf(key))
	}
	return keys
}

func gossipKeyOf(secret []byte) GossipKey {
	sum := sha256.Sum256(append([]byte("setpoint gossip key id "), secret...))
	return GossipKey{secret: secret, id: hex.EncodeToString(sum[:gossipIDBytes])}
}

// gossipLabel names the cluster among others on the network, by what only its members know.
func gossipLabel(first []byte) string {
	sum := sha256.Sum256(append([]byte("setpoint gossip label "), first...))
	return hex.EncodeToString(sum[:gossipLabelBytes])
}

// GossipRing are the keys of gossip, and the label of the pool. Its file gossip.ring has all of that; it is there from the first change on.
// Beside it gossip.key has the key in use alone, which is all that releases without a ring know.
type GossipRing struct {
	*Ring[GossipKey]
	// label is guarded by the ring's mu.
	label string
	// moment is what Told tells: nobody who asks waits for a disk.
	moment atomic.Pointer[GossipKeys]
}

// NewGossipRing has one key, and ends with the process.
func NewGossipRing(key []byte) (*GossipRing, error) { return gossipRingOf(FirstGossipKey(key), "") }

// FirstGossipKey are the keys of a pool in which none was ever replaced.
func FirstGossipKey(key []byte) GossipKeys {
	return GossipKeys{Label: gossipLabel(key), Keys: [][]byte{key}}
}

// gossipRingOf begins with keys, which folder keeps from the next change on; "": they end with the process.
func gossipRingOf(keys GossipKeys, folder string) (*GossipRing, error) {
	return newGossipRing(keys, folder), keys.validate()
}

func newGossipRing(keys GossipKeys, folder string) *GossipRing {
	g := &GossipRing{label: keys.Label}
	g.Ring = &Ring[GossipKey]{form: ringForm[GossipKey]{
		what: "gossip key", parse: parseGossipRing, encode: g.encode, plain: plainGossipKey, changed: g.tell,
	}}
	g.keptIn(folder)
	g.hold(keys.ring())
	return g
}

// loadGossipRing reads what a folder keeps. Without gossip.ring there is the key of gossip.key alone, and it is the first one.
func loadGossipRing(folder string) (*GossipRing, error) {
	plain, errPlain := os.ReadFile(filepath.Join(folder, fileGossipKey)) // before the other one, which is written first
	text, err := os.ReadFile(filepath.Join(folder, fileGossipRing))
	if errors.Is(err, fs.ErrNotExist) {
		text, err = plain, errPlain
	}
	if err != nil {
		return nil, err
	}
	keys, err := parseGossipKeys(text)
	if err != nil {
		return nil, err
	}
	return gossipRingOf(keys, folder)
}

func (g *GossipRing) keptIn(folder string) {
	if folder != "" {
		g.file, g.plainFile = filepath.Join(folder, fileGossipRing), filepath.Join(folder, fileGossipKey)
	}
}

// saveIn writes the keys to a folder, which keeps them from now on.
func (g *GossipRing) saveIn(folder string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.keptIn(folder)
	return g.write(*g.Now(), false)
}

// Told are the keys of this moment and the label, for members that may have them.
func (g *GossipRing) Told() GossipKeys {
	told := *g.moment.Load()
	told.Keys = slices.Clone(told.Keys)
	return told
}

// tell is called with the ring's mu held.
func (g *GossipRing) tell(ring []GossipKey) { g.moment.Store(new(g.told(ring))) }

func (g *GossipRing) told(ring []GossipKey) GossipKeys {
	told := GossipKeys{Label: g.label}
	for _, key := range ring {
		told.Keys = append(told.Keys, key.secret)
	}
	return told
}

// Follow holds exactly the keys that a server has told.
func (g *GossipRing) Follow(told GossipKeys) error {
	if err := told.validate(); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	former, ring := g.label, told.ring()
	if former == told.Label && sameKeys(*g.Now(), ring) {
		return g.settle()
	}
	g.label = told.Label
	if err := g.write(ring, false); err != nil {
		g.label = former
		return err
	}
	g.hold(ring)
	return nil
}

// Settle makes gossip.key the key in use where a crash has left another one beside gossip.ring.
func (g *GossipRing) Settle() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.settle()
}

// settle is called with the ring's mu held.
func (g *GossipRing) settle() error {
	if used := g.Used(); g.file != "" && !g.plainFits(used) {
		return secretfile.Write(g.plainFile, plainGossipKey(used), secretfile.Secret)
	}
	return nil
}

// copied is another ring with the keys of now, which end with the process.
func (g *GossipRing) copied() *GossipRing { return newGossipRing(g.Told(), "") }

// encode is called with the ring's mu held.
func (g *GossipRing) encode(keys []GossipKey, _ bool) ([]byte, error) {
	return json.Marshal(g.told(keys))
}

func plainGossipKey(key GossipKey) []byte {
	return []byte(base64.StdEncoding.EncodeToString(key.secret) + "\n")
}

func parseGossipRing(text []byte) ([]GossipKey, bool, error) {
	keys, err := parseGossipKeys(text)
	return keys.ring(), false, err
}

// parseGossipKeys reads gossip.ring or gossip.key.
func parseGossipKeys(text []byte) (keys GossipKeys, err error) {
	if text = bytes.TrimSpace(text); !bytes.HasPrefix(text, []byte("{")) {
		key, err := ParseGossipKey(string(text))
		if err != nil {
			return GossipKeys{}, err
		}
		return FirstGossipKey(key), nil
	}
	if err := json.Unmarshal(text, &keys); err != nil {
		return GossipKeys{}, errGossipKeys // the decoder's error may repeat a part of the text
	}
	return keys, keys.validate()
}

// ParseGossipKey reads the text of one gossip key: 32 bytes in base64.
func ParseGossipKey(text string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text))
	if err != nil {
		return nil, fmt.Errorf("gossip key: %w", err)
	}
	if len(key) != gossipKeyBytes {
		return nil, fmt.Errorf("gossip key: %d bytes, want %d", len(key), gossipKeyBytes)
	}
	return key, nil
}

// MakeGossipKey makes the text of a key, for GossipRing.Add, and how it will be called.
func MakeGossipKey() (text []byte, id string, err error) {
	secret := make([]byte, gossipKeyBytes)
	if _, err := rand.Read(secret); err != nil {
		return nil, "", fmt.Errorf("gossip key: %w", err)
	}
	key := gossipKeyOf(secret)
	return plainGossipKey(key), key.id, nil
}

func newGossipKey() ([]byte, error) {
	text, _, err := MakeGossipKey()
	return text, err
}
