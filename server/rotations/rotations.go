package rotations

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// retryInterval is how often a server tries again to follow.
const retryInterval = 10 * time.Second

// Mechanism is how one server holds what is rotated. It is called by one goroutine at a time, but Held.
type Mechanism interface {
	// Held are fingerprints of what is used and of all that is trusted now.
	Held() (uses string, trusts []string)
	// New makes a new key, and its fingerprint. It is used by nobody yet.
	New() (key []byte, fingerprint string, err error)
	// Key is the key with the fingerprint, as New made it, nil if the server does not hold it.
	Key(fingerprint string) []byte
	// Follow makes the server hold what the state wants. It may be called again.
	Follow(s rotation.State, keys rotation.Keys) error
}

// Teller is a Mechanism that has more to say of what it holds.
type Teller interface {
	Tell(held *rotation.Held)
}

// Changing is a Mechanism that may have to follow the same state once more.
type Changing interface {
	Changed() bool
}

// Config is what the rotations of a server need.
type Config struct {
	// Name is the server's, Servers are all members.
	Name    string
	Servers func() []trust.Server
	// Ask asks another member what it holds; it fails with ErrTooOld if that does not know the question.
	Ask     func(ctx context.Context, server trust.Server) ([]rotation.Held, error)
	Storage *storage.Store
	// Life is the name of the life of the cluster that this server is in: a restored backup begins another one.
	Life func() string
	// Client is the API of this server, as a server.
	Client kubernetes.Interface
	// Locker opens what servers have sealed.
	Locker     rotation.Locker
	Mechanisms map[rotation.Kind]Mechanism
	// CaughtUp, if not nil, waits until this server shuts out whoever was revoked up to now. Keys of gossip are followed only after that,
	// since nodes are handed them; other kinds wait for nothing.
	CaughtUp func(ctx context.Context) error
	// Followed, if not nil, is called whenever this server has followed the newest state of a kind, or has seen that there is none which
	// servers of its authority have written. It must not call these rotations.
	Followed func(kind rotation.Kind)
	// Nodes hold the keys of gossip too; nil: none do.
	Nodes *Nodes
	// Authorities say who has to follow the rotation of the certificate authority beside the members; nil: nobody has to.
	Authorities *Authorities

	Clock  clock.WithTicker
	Logger *slog.Logger
}

// Nodes are those that get the keys of gossip from servers, by their sessions.
type Nodes struct {
	// Lacking are those with a session at this server that do not hold what it holds, as rotation.Held.Nodes.
	Lacking func() []rotation.Lacking
	// Away are those without a session, as rotation.Progress.Away.
	Away func(ctx context.Context) ([]string, error)
}

// Rotations are those that one server follows. They are safe for concurrent use.
type Rotations struct {
	config   Config
	table    *storage.Table
	follower *storage.Follower

	// begun says that it follows the newest state of the cluster, also of the keys of gossip.
	begun atomic.Bool
	mu    sync.Mutex
	// gossip is what is stored of the keys of gossip, which may not be followed yet; told says that there is something to look at.
	gossip string
	told   chan struct{}
	// now is what is stored of each kind, and what the server could make of it.
	now map[rotation.Kind]*followed
	// changed is closed and made anew when now changes.
	changed chan struct{}
}

// followed is a rotation, as this server has it.
type followed struct {
	text    string
	state   rotation.State
	keys    rotation.Keys
	problem string
}

// New follows nothing yet: a replica that starts may be behind, and would go through what was long ago. What its folder has is what it
// held when it ended.
func New(c Config) *Rotations {
	r := &Rotations{
		config: c, table: c.Storage.Table(corev1.SchemeGroupVersion.WithResource("configmaps")),
		now: map[rotation.Kind]*followed{}, changed: make(chan struct{}), told: make(chan struct{}, 1),
	}
	r.follower = r.table.FollowSome(storage.Selection{
		Namespace: metav1.NamespaceSystem, Fields: fields.OneTermEqualSelector(metav1.ObjectNameField, rotation.ConfigMapName),
	}, func(_, is resource.Object) { r.take(is) }, c.Logger)
	return r
}

// Run follows until ctx ends, from the newest state of the cluster on.
func (r *Rotations) Run(ctx context.Context) {
	for trouble := ""; ; {
		err := r.catchUp(ctx)
		if err == nil {
			break
		}
		if ctx.Err() == nil && err.Error() != trouble {
			trouble = err.Error()
			r.config.Logger.Warn("this server does not know yet which keys the cluster uses", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-r.config.Clock.After(lookInterval):
		}
	}
	var following sync.WaitGroup
	following.Go(func() { r.follower.Run(ctx) })
	following.Go(func() { r.followGossip(ctx) })
	for ctx.Err() == nil {
		changed, again := r.stuck()
		if r.wait(ctx, changed, again, retryInterval) {
			r.retry()
		}
	}
	following.Wait()
}

// catchUp takes the newest state of the cluster, after which this replica has all that was written before.
func (r *Rotations) catchUp(ctx context.Context) error {
	newest, err := r.table.Snapshot(ctx, "")
	if err != nil {
		return err
	}
	found, err := newest.Get(metav1.NamespaceSystem, rotation.ConfigMapName)
	if err != nil {
		return err
	}
	r.take(found)
	return nil
}

// followGossip follows the keys of gossip until ctx ends: each state after who was revoked before it.
func (r *Rotations) followGossip(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-r.told:
		}
		r.mu.Lock()
		text := r.gossip
		r.mu.Unlock()
		for r.config.CaughtUp != nil && r.config.CaughtUp(ctx) != nil {
			if !r.wait(ctx, nil, true, lookInterval) {
				return
			}
		}
		r.mu.Lock()
		r.takeKind(rotation.GossipKey, text)
		r.tell()
		r.mu.Unlock()
		r.begun.Store(true)
	}
}

// Begun reports whether this server follows the newest state: before that it may hold keys of long ago.
func (r *Rotations) Begun() bool { return r.begun.Load() }

// wait ends with ctx, when something changes, or, if timed, after the pause: then it reports true. No timer is left behind.
func (r *Rotations) wait(ctx context.Context, changed <-chan struct{}, timed bool, pause time.Duration) bool {
	var over <-chan time.Time
	if timed {
		timer := r.config.Clock.NewTimer(pause)
		defer timer.Stop()
		over = timer.C()
	}
	select {
	case <-ctx.Done():
	case <-changed:
	case <-over:
		return true
	}
	return false
}

// stuck reports whether this server could not follow, or has to look again whether it does. changed is closed when something changes.
func (r *Rotations) stuck() (changed <-chan struct{}, stuck bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, f := range r.now {
		_, changes := r.config.Mechanisms[kind].(Changing)
		stuck = stuck || f.problem != "" || changes
	}
	return r.changed, stuck
}

func (r *Rotations) retry() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind, f := range r.now {
		changing, ok := r.config.Mechanisms[kind].(Changing)
		if f.problem != "" || ok && changing.Changed() {
			r.follow(kind, f)
		}
	}
}

// take follows the states of a ConfigMap, nil if there is none, and leaves the keys of gossip to followGossip.
func (r *Rotations) take(object resource.Object) {
	data := map[string]string{}
	if list, ok := object.(*corev1.ConfigMap); ok {
		data = list.Data
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takeKind(rotation.CA, data[string(rotation.CA)]) // its holders can read the others
	for kind := range r.config.Mechanisms {
		if kind != rotation.GossipKey && kind != rotation.CA {
			r.takeKind(kind, data[string(kind)])
		}
	}
	r.gossip = data[string(rotation.GossipKey)]
	select {
	case r.told <- struct{}{}:
	default: // it will look anyway
	}
	r.tell()
}

// tell wakes those who wait for changes; mu is held.
func (r *Rotations) tell() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *Rotations) takeKind(kind rotation.Kind, text string) {
	if r.config.Mechanisms[kind] == nil {
		return
	}
	if known := r.now[kind]; known != nil && known.text == text {
		return
	}
	if text == "" {
		delete(r.now, kind)
		r.followed(kind)
		return
	}
	state, keys, err := r.open(kind, text)
	if err != nil { // of a backup of another cluster, or of a later release: what is held stays
		r.config.Logger.Error("a rotation cannot be followed", "kind", kind, "err", err)
		delete(r.now, kind)
		if errors.Is(err, trust.ErrLocked) {
			r.followed(kind)
		}
		return
	}
	f := &followed{text: text, state: state.Of(r.config.Life()), keys: keys}
	r.now[kind] = f
	r.config.Logger.Info("rotation", "kind", kind, "generation", state.Generation, "phase", state.Phase, "aborted", state.Aborted)
	r.follow(kind, f)
}

// follow holds what the state wants; mu is held. What stays a problem is logged once.
func (r *Rotations) follow(kind rotation.Kind, f *followed) {
	before := f.problem
	f.problem = ""
	if err := r.config.Mechanisms[kind].Follow(f.state, f.keys); err != nil {
		f.problem = err.Error()
		if f.problem == before {
			return
		}
		r.config.Logger.Error("this server cannot follow a rotation", "kind", kind, "phase", f.state.Phase, "nextTry", retryInterval, "err", err)
		return
	}
	r.followed(kind)
}

func (r *Rotations) followed(kind rotation.Kind) {
	if r.config.Followed != nil {
		r.config.Followed(kind)
	}
}

// Held is what this server holds of all kinds that it can rotate.
func (r *Rotations) Held() []rotation.Held {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []rotation.Held
	for _, kind := range rotation.Kinds() {
		mechanism, ok := r.config.Mechanisms[kind]
		if !ok {
			continue
		}
		held := rotation.Held{Kind: kind}
		held.Uses, held.Trusts = mechanism.Held()
		if f := r.now[kind]; f != nil {
			held.Generation, held.Problem = f.state.Generation, f.problem
		}
		if teller, ok := mechanism.(Teller); ok {
			teller.Tell(&held)
		}
		if kind == rotation.GossipKey && r.config.Nodes != nil {
			held.Nodes = r.config.Nodes.Lacking()
		}
		if kind == rotation.CA && r.config.Authorities != nil {
			r.config.Authorities.tell(&held, r.now[kind])
		}
		all = append(all, held)
	}
	return all
}

// UnderWay are the rotations that are, by kind.
func (r *Rotations) UnderWay() []rotation.State {
	var all []rotation.State
	for _, f := range r.underWay() {
		all = append(all, f.state)
	}
	return all
}

func (r *Rotations) underWay() []followed {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []followed
	for _, kind := range rotation.Kinds() {
		if f := r.now[kind]; f != nil && f.state.UnderWay() {
			all = append(all, *f)
		}
	}
	return all
}

// isBuilt reports whether this server can rotate the kind.
func (r *Rotations) isBuilt(kind rotation.Kind) bool {
	_, ok := r.config.Mechanisms[kind]
	return ok && slices.Contains(rotation.Built(), kind)
}
