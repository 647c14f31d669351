package rotations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust/storagekeys"
)

const (
	// reloadTimeout bounds how long it takes to put another key in force; plugins of the administrator may be asked.
	reloadTimeout = 5 * time.Second
	// followWait is how long a write waits until this server follows the newest state.
	followWait = 10 * time.Second
)

const (
	givenRefusal = "it has --encryption-provider-config: add the new key to that file as the second one on every server, then make it the " +
		"first one on every server, wait until 'setpoint cluster status' shows nothing to rewrite, and remove the old one"
	ownRefusal = "its pki/encryption.yaml says more than which keys encrypt Secrets: add the new key as the second one on every server, then " +
		"make it the first one on every server, wait until 'setpoint cluster status' shows nothing to rewrite, and remove the old one"
)

// SealingKeys are the keys by which a cluster encrypts what it stores, the first one encrypts (storagekeys.Keys).
type SealingKeys interface {
	Now() ([]storagekeys.Key, error)
	Replace(keys []storagekeys.Key) error
}

// SealingConfig is what a Sealing needs.
type SealingConfig struct {
	Keys SealingKeys
	// Followed is closed when the newest state of the cluster is followed, or it is known that there is none for this server.
	Followed <-chan struct{}
	// Reload puts in force what Keys are, and InForce is what is: none if the file says more than keys.
	Reload  func(ctx context.Context) error
	InForce func() []storagekeys.Key
	// Sealed is how many objects this server has that a key of the name has encrypted.
	Sealed func(name string) int
	// IsGiven says that the administrator has a configuration of his own.
	IsGiven func() bool
}

// Sealing is the Mechanism of the key that encrypts what is stored. The old key goes only when nothing that this server has needs it, and
// keys that somebody has added to the file, to read an older backup with, stay.
type Sealing struct {
	config SealingConfig
	mu     sync.Mutex
	state  rotation.State
	// told is closed with the first state.
	told chan struct{}
}

// NewSealing has followed nothing yet.
func NewSealing(c SealingConfig) *Sealing { return &Sealing{config: c, told: make(chan struct{})} }

// Held implements Mechanism. What is trusted beside the keys of the rotation is nobody's concern.
func (s *Sealing) Held() (uses string, trusts []string) {
	state := s.now()
	for i, key := range s.config.InForce() {
		id := key.ID()
		if i == 0 {
			uses = id
		}
		if i == 0 || id == state.From || id == state.To {
			trusts = append(trusts, id)
		}
	}
	return uses, trusts
}

// Tell implements Teller.
func (s *Sealing) Tell(held *rotation.Held) {
	switch {
	case s.config.IsGiven():
		held.Refuses = givenRefusal
	case len(s.config.InForce()) == 0:
		held.Refuses = ownRefusal
	}
	if state := s.now(); state.Phase == rotation.Use {
		held.ToRewrite = s.sealed(state.From)
	}
}

func (s *Sealing) now() rotation.State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state
}

// New implements Mechanism.
func (s *Sealing) New() (key []byte, fingerprint string, err error) { return storagekeys.Make() }

// Key implements Mechanism.
func (s *Sealing) Key(fingerprint string) []byte {
	for _, key := range s.config.InForce() {
		if key.ID() != fingerprint {
			continue
		}
		if text, err := key.Text(); err == nil {
			return text
		}
	}
	return nil
}

// Follow implements Mechanism.
func (s *Sealing) Follow(state rotation.State, keys rotation.Keys) error {
	s.tellOf(state)
	has, err := s.config.Keys.Now()
	if err != nil {
		return err
	}
	next, err := s.next(state, keys, has)
	if err != nil {
		return err
	}
	if !slices.Equal(has, next) {
		if err := s.config.Keys.Replace(next); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), reloadTimeout)
	defer cancel()
	if err := s.config.Reload(ctx); err != nil {
		return err
	}
	if now := s.config.InForce(); len(now) == 0 || now[0] != next[0] {
		return errNotInForce
	}
	return s.needs(state, next)
}

// tellOf wakes who waits for the first state.
func (s *Sealing) tellOf(state rotation.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.To == "" {
		close(s.told)
	}
	s.state = state
}

// needs fails if the old key is still needed although it is to be gone, or nobody has it any more.
func (s *Sealing) needs(state rotation.State, has []storagekeys.Key) error {
	if !isOver(state) {
		return nil
	}
	needed := s.sealed(state.From)
	held := slices.ContainsFunc(has, func(key storagekeys.Key) bool { return key.ID() == state.From })
	switch {
	case needed == 0:
		return nil
	case !held:
		return fmt.Errorf("it has %d objects of the old one: %w %s", needed, errLacks, state.From)
	case state.Phase == rotation.Drop:
		return fmt.Errorf("it has %d objects that only the old one can read", needed)
	}
	return nil
}

// isOver reports whether nobody should need the old key any more.
func isOver(state rotation.State) bool {
	return state.Phase == rotation.Drop || state.Phase == rotation.Done
}

// Changed reports whether this server needs the old key again, as after a write that came late, or has it and needs it no more.
func (s *Sealing) Changed() bool {
	state := s.now()
	if !isOver(state) || state.From == "" {
		return false
	}
	has := slices.ContainsFunc(s.config.InForce(), func(key storagekeys.Key) bool { return key.ID() == state.From })
	return has != (s.sealed(state.From) > 0)
}

// next are the keys that this server has to have, in their order: those that the state wants, the old one while something needs it, and
// those that others have added.
func (s *Sealing) next(state rotation.State, keys rotation.Keys, has []storagekeys.Key) (next []storagekeys.Key, err error) {
	_, wanted := state.Wanted()
	if isOver(state) && s.sealed(state.From) > 0 {
		wanted = append(wanted, state.From)
	}
	for _, id := range wanted {
		key, err := find(id, keys, has)
		if err != nil && isOver(state) && id == state.From {
			continue // needs tells of it
		}
		if err != nil {
			return nil, err
		}
		next = append(next, key)
	}
	for _, key := range has {
		id := key.ID()
		if slices.Contains(wanted, id) || isOver(state) && id == state.From {
			continue
		}
		next = append(next, key)
	}
	return next, nil
}

func find(id string, keys rotation.Keys, has []storagekeys.Key) (storagekeys.Key, error) {
	for _, key := range has {
		if key.ID() == id {
			return key, nil
		}
	}
	if len(keys[id]) == 0 {
		return storagekeys.Key{}, fmt.Errorf("%w %s", errLacks, id)
	}
	return storagekeys.Parse(keys[id])
}

// sealed is how many objects there are that the key has encrypted.
func (s *Sealing) sealed(id string) int {
	if id == "" {
		return 0
	}
	return s.config.Sealed(storagekeys.NameOf(id))
}

var (
	errBehind     = errors.New("this server lacks the key with which the cluster encrypts now")
	errNotInForce = errors.New("another key than the first one of pki/encryption.yaml is in force")
)

// MayWrite waits until this server knows the newest state, and fails if nobody else could read what the key encrypts, by its ID. That of a
// key that it cannot know, "", is the administrator's concern, but not while a rotation is under way.
func (s *Sealing) MayWrite(ctx context.Context, with string) error {
	if err := s.wait(ctx); err != nil {
		return err
	}
	state := s.now()
	uses, trusts := state.Wanted()
	switch {
	case state.To == "", with == uses, state.Phase == rotation.Use && slices.Contains(trusts, with):
		return nil
	case with == "" && state.Phase == rotation.Done:
		return nil
	}
	return apierrors.NewServiceUnavailable(errBehind.Error())
}

func (s *Sealing) wait(ctx context.Context) error {
	select {
	case <-s.config.Followed:
		return nil
	case <-s.told:
		return nil
	default:
	}
	ctx, cancel := context.WithTimeout(ctx, followWait)
	defer cancel()
	select {
	case <-s.config.Followed:
		return nil
	case <-s.told:
		return nil
	case <-ctx.Done():
		return apierrors.NewServiceUnavailable("this server does not know yet with which key the cluster encrypts now")
	}
}
