package host

import (
	"log/slog"

	"github.com/setpoint-io/setpoint/agent/node/gossip"
	"github.com/setpoint-io/setpoint/agent/node/session"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// ringKeeper holds the keys of gossip that servers tell by the session: first on disk, then in the pool.
type ringKeeper struct {
	ring *trust.GossipRing
	pool *gossip.Pool // nil without gossip: the keys are kept all the same
	// relabelled is called when the pool has another label than this member has begun with.
	relabelled func()
	logger     *slog.Logger
	problem    string // what was logged last
}

// held implements session.Client.RingHeld.
func (k *ringKeeper) held() session.RingHeld {
	told := k.ring.Told()
	return session.RingHeld{Label: told.Label, IDs: told.IDs()}
}

// take implements session.Client.Ring. What fails is tried again with the next answer, and logged once.
func (k *ringKeeper) take(told session.Ring) {
	former, keys := k.ring.Told().Label, trust.GossipKeys{Label: told.Label, Keys: told.Keys}
	err := k.ring.Follow(keys)
	if err == nil {
		err = k.pool.UseKeys(keys.Keys)
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
	if former != keys.Label {
		k.relabelled()
	}
}
