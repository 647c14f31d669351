package host

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// member is this agent in the pool (gossip.Pool).
type member interface {
	Run(ctx context.Context) error
	Leave(timeout time.Duration) error
	Rejoin()
	UseKeys(keys [][]byte) error
	Address() string
}

// ringKeeper holds the keys of gossip that servers tell by the session: first on disk, then in the pool. A pool with another label is
// another pool: the member leaves the one and joins the other, and the session goes on meanwhile.
type ringKeeper struct {
	ring *trust.GossipRing
	// join becomes a member; it returns nil without gossip: the keys are kept all the same.
	join func(trust.GossipKeys) member
	// joined is called after each further join.
	joined  func()
	logger  *slog.Logger
	problem string // what was logged last
	// relabelled says that the pool has another label than the member has begun with.
	relabelled chan struct{}

	mu     sync.Mutex
	member member // nil without gossip
	// label is that of the member's pool.
	label string
	// holds is what the member has, or begins with: it may lag behind the ring.
	holds trust.GossipKeys
}

// newRingKeeper is a member of the pool at once.
func newRingKeeper(ring *trust.GossipRing, join func(trust.GossipKeys) member, logger *slog.Logger) *ringKeeper {
	k := &ringKeeper{ring: ring, join: join, joined: func() {}, logger: logger, relabelled: make(chan struct{}, 1)}
	k.begin()
	return k
}

func (k *ringKeeper) begin() {
	k.mu.Lock()
	k.holds = k.ring.Told()
	k.label = k.holds.Label
	select {
	case <-k.relabelled: // said again while the former member left
	default:
	}
	k.member = k.join(k.holds)
	k.mu.Unlock()
	k.joined()
}

// now is the member, nil without gossip.
func (k *ringKeeper) now() member {
	if k == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.member
}

// run is a member of the pool until ctx ends, and says goodbye.
func (k *ringKeeper) run(ctx context.Context) error {
	for {
		if err := k.runOne(ctx); err != nil || ctx.Err() != nil {
			return err
		}
		k.begin()
	}
}

// runOne is run for as long as the pool has the same label.
func (k *ringKeeper) runOne(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-k.relabelled:
		}
	})
	one := k.now()
	if one == nil {
		<-ctx.Done()
		return nil
	}
	err := one.Run(ctx)
	cancel()
	if leaveErr := one.Leave(gossip.LeaveTimeout); leaveErr != nil {
		k.logger.Debug("the gossip pool was not told of the goodbye", "err", leaveErr)
	}
	return err
}

// held implements session.Client.RingHeld.
func (k *ringKeeper) held() session.RingHeld {
	k.mu.Lock()
	defer k.mu.Unlock()
	return session.RingHeld{Label: k.holds.Label, IDs: k.holds.IDs()}
}

// take implements session.Client.Ring. What fails is tried again with the next answer, and logged once.
func (k *ringKeeper) take(told session.Ring) {
	keys := trust.GossipKeys{Label: told.Label, Keys: told.Keys}
	err := k.ring.Follow(keys)
	if err == nil {
		err = k.give(keys)
	}
	if err != nil {
		if k.problem != err.Error() {
			k.problem = err.Error()
			k.logger.Error("the keys of gossip that the server tells cannot be taken: the server is asked again", "err", err)
		}
		return
	}
	k.problem = ""
	k.logger.Info("the keys of gossip are others now", "uses", keys.IDs()[0], "keys", len(keys.Keys))
}

// give has the member use the keys of the ring. One of another pool never gets them: it leaves.
func (k *ringKeeper) give(keys trust.GossipKeys) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case k.label != keys.Label:
		select {
		case k.relabelled <- struct{}{}:
		default: // it begins anew anyway, with what the ring has then
		}
	case k.member != nil:
		if err := k.member.UseKeys(keys.Keys); err != nil {
			return err
		}
	}
	k.holds = keys
	return nil
}
