package setpoint

import (
	"context"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"github.com/setpoint-io/setpoint/controllers/nodelifecycle"
)

// power knows which of the played nodes live, in place of sessions and gossip: a heartbeat of each would be most of what their
// cluster does. It is safe for concurrent use.
type power struct {
	played  Played
	clock   clock.WithTicker
	changes chan string

	mu   sync.Mutex
	lost map[string]time.Time // since when it is known
}

var _ nodelifecycle.Liveness = &power{}

func newPower(played Played, by clock.WithTicker) *power {
	p := &power{played: played, clock: by, changes: make(chan string, len(played.Nodes)+1), lost: map[string]time.Time{}}
	for _, node := range played.Nodes {
		if node.Lost {
			p.lost[node.Name] = by.Now()
		}
	}
	return p
}

// Node implements nodelifecycle.Liveness.
func (p *power) Node(name string) nodelifecycle.Signal {
	p.mu.Lock()
	defer p.mu.Unlock()
	if since, lost := p.lost[name]; lost {
		return nodelifecycle.Signal{
			Session: nodelifecycle.SessionLost, SessionSince: since, Gossip: nodelifecycle.GossipDead, GossipSince: since,
		}
	}
	return nodelifecycle.Signal{Session: nodelifecycle.SessionAlive}
}

// Changes implements nodelifecycle.Liveness.
func (p *power) Changes() <-chan string { return p.changes }

// turn makes it known whether a node lives: that it does not after a while.
func (p *power) turn(ctx context.Context, name string, on bool) {
	for _, node := range p.played.Nodes {
		if node.Name == name && !on {
			timer := p.clock.NewTimer(node.Notice) // before the caller lets time pass
			go func() {
				defer timer.Stop()
				select {
				case <-ctx.Done():
				case <-timer.C():
					p.tell(name, false)
				}
			}()
			return
		}
	}
	p.tell(name, on)
}

func (p *power) tell(name string, on bool) {
	p.mu.Lock()
	delete(p.lost, name)
	if !on {
		p.lost[name] = p.clock.Now()
	}
	p.mu.Unlock()
	select {
	case p.changes <- name:
	default: // who is there looks at all, as so many have changed
	}
}

// PlayedPrefix is the value of simulated.Label at Nodes of a backup that are played.
const PlayedPrefix = "what-if"

func (p *power) names() []string {
	names := make([]string, len(p.played.Nodes))
	for i, node := range p.played.Nodes {
		names[i] = node.Name
	}
	return names
}
