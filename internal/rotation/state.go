package rotation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ConfigMapName is the ConfigMap in kube-system that holds the states.
const ConfigMapName = "setpoint-rotations"

// textBytesMax is more than any state has, with its keys.
const textBytesMax = 64 << 10

// sealedPurpose is what the keys are sealed for.
const sealedPurpose = "rotation"

var errState = errors.New("not a rotation that servers of this release have written")

// Phase is how far a rotation is.
type Phase string

// Phases, in their order. What a member does in them: Trust uses From and trusts both, Use uses To and trusts both, Drop and Done use and
// trust To alone.
const (
	Trust Phase = "trust"
	Use   Phase = "use"
	Drop  Phase = "drop"
	Done  Phase = "done"
)

// State is one rotation: the one that is under way, or the last one. Its fields are never renamed.
type State struct {
	Kind Kind `json:"kind"`
	// Generation counts the rotations of the kind, from 1.
	Generation int64 `json:"generation"`
	Phase      Phase `json:"phase"`
	// From and To are fingerprints of the old key and the new one. An abort makes them change places.
	From string `json:"from,omitempty"`
	To   string `json:"to"`
	// Aborted says that somebody has ordered the way back.
	Aborted bool `json:"aborted,omitempty"`
	// Started is when it was ordered, Since when the phase began.
	Started time.Time `json:"started"`
	Since   time.Time `json:"since"`
	// KeepOld is how long From is trusted after To is used.
	KeepOld metav1.Duration `json:"keepOld"`
	// HeldSince is when all members were first seen to hold what the phase wants: how long it lasts counts from then. It is written only in
	// phases that last, and HeldIn is the life of the cluster that it was written in: in a restored backup it counts for nothing.
	HeldSince *time.Time `json:"heldSince,omitempty"`
	HeldIn    string     `json:"heldIn,omitempty"`
}

// Keys are those of a rotation, by their fingerprints. They are secret.
type Keys map[string][]byte

// Locker seals what only servers may read (trust.Locker).
type Locker interface {
	Lock(purpose string, text, bound []byte) ([]byte, error)
	Unlock(purpose string, sealed, bound []byte) ([]byte, error)
}

// stored is a state in the ConfigMap. Its fields are never renamed.
type stored struct {
	// State is a State, to the letter: a later release may say more in it.
	State json.RawMessage `json:"state"`
	// Sealed are the keys, bound to the state.
	Sealed []byte `json:"sealed"`
}

// Text is the state as it is stored.
func (s State) Text(locker Locker, keys Keys) (string, error) {
	s.Started, s.Since = s.Started.UTC(), s.Since.UTC()
	state, err := json.Marshal(s)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(keys)
	if err != nil {
		return "", err
	}
	sealed, err := locker.Lock(sealedPurpose, text, state)
	if err != nil {
		return "", err
	}
	whole, err := json.Marshal(stored{state, sealed})
	return string(whole), err
}

// Read reads what is stored of a kind. It fails if anybody but a server has written it.
func Read(locker Locker, kind Kind, text string) (s State, keys Keys, err error) {
	var whole stored
	if len(text) > textBytesMax {
		return State{}, nil, fmt.Errorf("%w: it has more than %d bytes", errState, textBytesMax)
	}
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return State{}, nil, fmt.Errorf("%w: %w", errState, err)
	}
	plain, err := locker.Unlock(sealedPurpose, whole.Sealed, whole.State)
	if err != nil {
		return State{}, nil, fmt.Errorf("%w: %w", errState, err)
	}
	if err := errors.Join(json.Unmarshal(whole.State, &s), json.Unmarshal(plain, &keys)); err != nil {
		return State{}, nil, fmt.Errorf("%w: %w", errState, err)
	}
	if s.Kind != kind || !slices.Contains([]Phase{Trust, Use, Drop, Done}, s.Phase) {
		return State{}, nil, fmt.Errorf("%w: the kind %q in the phase %q", errState, s.Kind, s.Phase)
	}
	return s, keys, nil
}

// UnderWay reports whether members have something to do yet.
func (s State) UnderWay() bool { return s.Phase != "" && s.Phase != Done }

// Wanted is what a member has to hold in the phase. Certificates are not trusted one by one.
func (s State) Wanted() (uses string, trusts []string) {
	if s.Kind == Serving {
		return s.To, nil
	}
	switch s.Phase {
	case Trust:
		return s.From, []string{s.From, s.To}
	case Use:
		return s.To, []string{s.To, s.From}
	}
	return s.To, []string{s.To}
}

// Relock is the text of a state, whatever it says, sealed anew: holders of the key that is used now can read it when the former one is
// gone.
func Relock(locker Locker, text string) (string, error) {
	var whole stored
	if err := json.Unmarshal([]byte(text), &whole); err != nil {
		return "", fmt.Errorf("%w: %w", errState, err)
	}
	plain, err := locker.Unlock(sealedPurpose, whole.Sealed, whole.State)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errState, err)
	}
	if whole.Sealed, err = locker.Lock(sealedPurpose, plain, whole.State); err != nil {
		return "", err
	}
	again, err := json.Marshal(whole)
	return string(again), err
}
