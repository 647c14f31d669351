package reread

import (
	"bytes"
	"context"
	"crypto/sha256"
	"log/slog"
	"time"

	"github.com/setpoint-io/setpoint/internal/aligned"
)

// Next is what was made of a text, ready to be put in force.
type Next struct {
	// Apply puts it in force. An error means not yet: a plugin does not answer, for example. It is called at each look until it succeeds.
	Apply func(context.Context) error
	// Drop is called in place of Apply once the files say something else. Nil: there is nothing to do.
	Drop func()
}

// Config of a Follower. All of it is required.
type Config struct {
	// Every is the pause between two looks.
	Every time.Duration
	// Read returns what the files say now, or a text that differs whenever they do.
	Read func() ([]byte, error)
	// Judge says what is wrong with a text, or makes of it what can be put in force. What it starts may run until ctx ends. It is called
	// once for each text that is right, and every looksAtMistake looks for one that is wrong: it may name other files. What may go away
	// by itself sooner belongs into Next.Apply.
	Judge func(ctx context.Context, text []byte) (Next, error)
	// Warning is logged with an error.
	Warning string
	Logger  *slog.Logger
}

// looksAtMistake is after how many looks a text that was wrong is judged again: it may name other files, which somebody mends.
const looksAtMistake = 6

// Follower reads files again and again. One goroutine uses it.
type Follower struct {
	config  Config
	inForce [sha256.Size]byte
	// judged is the hash of the text that was judged last, err what was wrong with it; next waits for its Apply.
	judged [sha256.Size]byte
	err    error
	next   *Next
	// looks counts those since the last judgement.
	looks int
	told  Told
}

// New returns a Follower of files whose text in force is inForce.
func New(config Config, inForce []byte) *Follower {
	hash := sha256.Sum256(inForce)
	return &Follower{config: config, inForce: hash, judged: hash}
}

// Run looks at the files until ctx ends.
func (f *Follower) Run(ctx context.Context) {
	for aligned.Sleep(ctx, f.config.Every) {
		_ = f.Look(ctx) // it has told
	}
}

// Look reads the files once, takes what they say, and tells what is wrong.
func (f *Follower) Look(ctx context.Context) error {
	err := f.look(ctx)
	if f.told.IsNew("", err) {
		f.config.Logger.Warn(f.config.Warning, "err", err)
	}
	return err
}

func (f *Follower) look(ctx context.Context) error {
	text, err := f.config.Read()
	if err != nil {
		return err
	}
	f.looks++
	if hash := sha256.Sum256(text); hash != f.judged || f.err != nil && f.looks >= looksAtMistake {
		f.judge(ctx, text, hash)
	}
	if f.next == nil {
		return f.err
	}
	if err := f.next.Apply(ctx); err != nil {
		return err
	}
	f.inForce, f.next = f.judged, nil
	return nil
}

// judge forgets what the former text said. A text that is in force already needs no judgement.
func (f *Follower) judge(ctx context.Context, text []byte, hash [sha256.Size]byte) {
	if f.next != nil && f.next.Drop != nil {
		f.next.Drop()
	}
	f.judged, f.next, f.err, f.looks = hash, nil, nil, 0
	if hash == f.inForce {
		return
	}
	next, err := f.config.Judge(ctx, text)
	if err == nil {
		f.next = &next
		return
	}
	f.err = err
	if again, readErr := f.config.Read(); readErr != nil || !bytes.Equal(again, text) {
		f.judged = [sha256.Size]byte{} // what was judged may have been another text: Judge may read the files itself
	}
}
