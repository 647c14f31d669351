package rotations

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

const (
	// holdInterval is how often it asks them while a phase lasts that all hold.
	holdInterval = time.Minute
	// lookInterval is how often the leader asks the members while it waits for one.
	lookInterval = time.Second
	// askTimeout bounds how long a member may take to say what it holds.
	askTimeout = 2 * time.Second
)

// ErrTooOld says that a server does not know the question.
var ErrTooOld = errors.New("its release knows nothing of rotations")

// Lead drives the rotations that are under way, until ctx ends; its writes carry the fence of ctx.
func (r *Rotations) Lead(ctx context.Context) error {
	var seen seen
	for ctx.Err() == nil {
		changed, _ := r.stuck()
		pause, something := r.pass(ctx, &seen)
		r.wait(ctx, changed, something, pause)
	}
	return nil
}

// pass takes a step of each rotation that can, and says when to look again; something is false if none is under way.
func (r *Rotations) pass(ctx context.Context, seen *seen) (pause time.Duration, something bool) {
	for _, f := range r.underWay() {
		wait := r.step(ctx, f, seen)
		if !something || wait < pause {
			pause, something = wait, true
		}
	}
	return pause, something
}

// step begins the next phase if all members hold what this one wants, or how long they have to; it says when to look again.
func (r *Rotations) step(ctx context.Context, f followed, seen *seen) time.Duration {
	members := r.members(ctx)
	now := r.config.Clock.Now()
	step := seen.of(f.state, now).Plan(members, now, r.waits(ctx, f.state, members)...)
	switch {
	case step.Held:
		r.write(ctx, f, f.state.Held(r.config.Life(), now))
	case step.Broken:
		r.write(ctx, f, f.state.Broken())
	case step.Next != "":
		r.write(ctx, f, f.state.In(step.Next, now))
	case step.Until != nil && f.state.Kind != rotation.EncryptionKey: // of that one nothing must be missed
		return max(lookInterval, min(holdInterval, step.Until.Sub(now)))
	}
	return lookInterval
}

// seen is since when a term's leader itself has seen that nothing needs the old key of what is stored. Nothing that was encrypted with it
// may come later, so neither another server's clock nor one that jumps counts.
type seen struct {
	written, since time.Time
}

// of is the state, held since that time.
func (s *seen) of(state rotation.State, now time.Time) rotation.State {
	if state.Kind != rotation.EncryptionKey {
		return state
	}
	if state.HeldSince == nil {
		s.written = time.Time{}
		return state
	}
	if !s.written.Equal(*state.HeldSince) {
		s.written, s.since = *state.HeldSince, now
	}
	state.HeldSince = &s.since
	return state
}

// write writes what comes after f, unless somebody else has.
func (r *Rotations) write(ctx context.Context, f followed, next rotation.State) {
	text, err := next.Text(r.config.Locker, next.Needed(f.keys))
	if err == nil {
		err = r.replace(ctx, f.state.Kind, f.text, text, next.Kind == rotation.CA && next.Phase == rotation.Drop)
	}
	if err != nil && ctx.Err() == nil {
		r.config.Logger.Warn("the next phase of a rotation was not written", "kind", f.state.Kind, "phase", next.Phase, "err", err)
	}
}

// replace writes what is stored of a kind, unless somebody else has changed it. all says that the other kinds are sealed anew.
func (r *Rotations) replace(ctx context.Context, kind rotation.Kind, was, is string, all bool) error {
	_, err := r.table.Write(ctx, metav1.NamespaceSystem, rotation.ConfigMapName, func(v *storage.View) (*storage.Change, error) {
		if v.Current == nil || v.Current.Object().(*corev1.ConfigMap).Data[string(kind)] != was {
			return nil, nil // the follower will tell
		}
		next := v.Current.Copy().(*corev1.ConfigMap)
		next.Data[string(kind)] = is
		if all {
			r.relock(next.Data)
		}
		return &storage.Change{Object: next}, nil
	})
	return err
}

// members asks all of them at once what they hold, in the order of their names.
func (r *Rotations) members(ctx context.Context) []rotation.Member {
	servers := slices.Clone(r.config.Servers())
	slices.SortFunc(servers, byName)
	servers = slices.CompactFunc(servers, func(a, b trust.Server) bool { return a.Name == b.Name && a.Endpoint == b.Endpoint })
	members := make([]rotation.Member, len(servers))
	var asking sync.WaitGroup
	for i, server := range servers {
		asking.Go(func() { members[i] = r.ask(ctx, server) })
	}
	asking.Wait()
	return members
}

func (r *Rotations) ask(ctx context.Context, server trust.Server) rotation.Member {
	if server.Name == r.config.Name {
		return rotation.Member{Name: server.Name, Held: r.Held()}
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	held, err := r.config.Ask(ctx, server)
	switch {
	case errors.Is(err, ErrTooOld):
		return rotation.Member{Name: server.Name}
	case err != nil:
		r.config.Logger.Debug("a server does not say which keys it holds", "server", server.Name, "err", err)
		return rotation.Member{Name: server.Name, Silent: "it does not answer"}
	}
	return rotation.Member{Name: server.Name, Held: held}
}
