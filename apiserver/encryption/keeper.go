package encryption

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/aligned"
)

const (
	// turnInterval is how often a server looks whether objects are written in another way
	// than before, and the leader whether there is something to write again.
	turnInterval = time.Second
	// inspectInterval is how often a server looks whether it can read what is encrypted, if
	// anything has changed; inspectAnyway how often if nothing has: a KMS plugin may have
	// another key, or answer again.
	inspectInterval = 10 * time.Second
	inspectAnyway   = time.Minute
)

// Keeper keeps the objects of a store encrypted as the configuration says.
type Keeper struct {
	*Encryption
	store  *storage.Store
	report atomic.Pointer[storage.EncryptionReport]
}

// Status says how the objects of a server are kept that are or should be encrypted.
type Status struct {
	Objects int `json:"objects"`
	// ToRewrite are not kept as they would be written now; the leader writes them again.
	ToRewrite int `json:"toRewrite"`
	// Unreadable cannot be decrypted by this server; Problem says why, of the first.
	Unreadable int    `json:"unreadable"`
	Problem    string `json:"problem,omitempty"`
	// Waiting: nothing is encrypted before all servers run a release that can read it.
	Waiting bool `json:"waiting,omitempty"`
}

// Keep makes the store encrypt as e says. The store must not be in use yet.
func Keep(store *storage.Store, e *Encryption) *Keeper {
	store.Encrypt(e)
	return &Keeper{Encryption: e, store: store}
}

// Check fails while this server cannot read something.
func (k *Keeper) Check(context.Context) error {
	r := k.report.Load()
	if r == nil || r.Unreadable == 0 {
		return nil
	}
	return fmt.Errorf(
		"%d objects cannot be decrypted by this server, the first is %s: does its encryption configuration have their key?",
		r.Unreadable,
		r.Problem,
	)
}

// Status is nil before the first look.
func (k *Keeper) Status() *Status {
	r := k.report.Load()
	if r == nil {
		return nil
	}
	return &Status{Objects: r.Objects, ToRewrite: r.Outdated, Unreadable: r.Unreadable, Problem: r.Problem, Waiting: r.Waiting}
}

// Sealed is how many objects this server has that were encrypted with a key of the name.
func (k *Keeper) Sealed(name string) int { return k.store.SealedWith(prefixOf(name)) }

// Inspect looks at what is stored until ctx ends.
func (k *Keeper) Inspect(ctx context.Context) {
	k.inspect(ctx)
	for looked := time.Now(); aligned.Sleep(ctx, turnInterval); {
		if k.due(time.Since(looked)) {
			k.inspect(ctx)
			looked = time.Now()
		}
	}
}

// due reports whether it is time to inspect again, so long after the last time.
func (k *Keeper) due(passed time.Duration) bool {
	report := k.report.Load()
	return report == nil || passed >= inspectAnyway || k.store.EncryptionTurned(report) ||
		passed >= inspectInterval && k.store.EncryptedChanged(report)
}

// inspect makes the report anew. What cannot be read is said when it begins and when it ends.
func (k *Keeper) inspect(ctx context.Context) {
	now, err := k.store.InspectEncryption(ctx)
	if err != nil {
		return // ctx has ended, or this server knows nothing yet
	}
	former := k.report.Swap(now)
	was := former != nil && former.Unreadable > 0
	switch {
	case now.Unreadable > 0 && !was:
		k.config.Logger.Error("objects cannot be decrypted: their key is not in this server's encryption configuration, or does not answer",
			"objects", now.Unreadable, "first", now.Problem)
	case now.Unreadable == 0 && was:
		k.config.Logger.Info("all objects can be decrypted again")
	}
}

// Rewrite writes again, in the term of ctx's origin, what is not kept as it would be
// written now, until ctx ends.
func (k *Keeper) Rewrite(ctx context.Context) error {
	for aligned.Sleep(ctx, turnInterval) {
		report := k.report.Load()
		if report == nil || report.Outdated == 0 || report.Waiting {
			continue
		}
		k.config.Logger.Info("writing objects again as they are to be encrypted now", "objects", report.Outdated)
		left, err := k.store.Reencrypt(ctx)
		if err != nil && !errors.Is(err, context.Canceled) {
			k.config.Logger.Warn("not all objects were written again", "left", left, "err", err)
			sleep(ctx, inspectInterval)
		}
		k.inspect(ctx)
	}
	return nil
}

// sleep reports whether it slept to the end.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
