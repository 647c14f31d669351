package probe

import (
	"context"
	"log/slog"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/net/network/nft"
	"github.com/setpoint-io/setpoint/internal/nodefirewall"
)

const (
	// lookInterval is how often is probed while nothing changes, and retryInterval how often while something is blocked or not known.
	lookInterval  = 5 * time.Minute
	retryInterval = time.Minute
	// restTime is the least between two probes: pods that start change nftables too. settleTime lets whoever changes it finish, and the
	// agent put back what was its own.
	restTime   = 15 * time.Second
	settleTime = 2 * time.Second
)

// Place is where a pod would be.
type Place struct {
	// Bridge is the pods', Gateway its address.
	Bridge  string
	Gateway netip.Addr
	// Address and Hardware are those of the pod.
	Address  netip.Addr
	Hardware net.HardwareAddr
	MTU      int
}

// Target is a port of this machine that pods may reach, at which something answers. Network is "udp", where that is DNS, or "tcp".
type Target struct {
	Network string
	At      netip.AddrPort
}

// Config of NewWatch; all fields are required.
type Config struct {
	// Lend gives a place that no pod has until it is given back.
	Lend func() (place Place, giveBack func(), err error)
	// Targets are asked about with each probe, as they may come and go.
	Targets func() []Target
	// Domain is the cluster's, of which the DNS knows names.
	Domain string
	// Pods is the range of all pods of the cluster, for commands that users are told.
	Pods func() netip.Prefix
	// Changes calls wake when something may have changed, until ctx ends.
	Changes func(ctx context.Context, wake func())
	// Tell is told what is blocked, once it is known, and when that changes.
	Tell   func(nodefirewall.Problem)
	Logger *slog.Logger
}

// Watch probes again and again. But for woken, all is Run's.
type Watch struct {
	Config
	woken      chan struct{} // holds one: more would say the same
	probe      func(context.Context) (finding, error)
	generation func() (uint32, error)
	explain    func(finding) nodefirewall.Problem

	seen  uint32 // the generation of nftables before the last probe
	known finding
	told  *nodefirewall.Problem
	said  string // the last error
}

// NewWatch changes nothing before Run.
func NewWatch(c Config) *Watch {
	w := &Watch{Config: c, woken: make(chan struct{}, 1), generation: nft.Generation}
	w.probe = w.Config.probe
	w.explain = func(f finding) nodefirewall.Problem { return problemOf(f, readRules(), c.Pods()) }
	return w
}

// Run probes until ctx ends.
func (w *Watch) Run(ctx context.Context) {
	var children sync.WaitGroup
	defer children.Wait()
	children.Go(func() { w.Changes(ctx, w.wake) })
	for again := w.pass(ctx); w.rest(ctx, again); {
		again = w.pass(ctx)
	}
}

func (w *Watch) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

// pass probes once. It returns after how long it has to probe again, if nothing changes.
func (w *Watch) pass(ctx context.Context) (again time.Duration) {
	w.seen, _ = w.generation() // without it only time tells
	found, err := w.probe(ctx)
	if err != nil {
		w.failed(ctx, err)
		return retryInterval
	}
	w.known = found.over(w.known)
	if w.known.input != unknown || w.known.forwarding != unknown {
		w.tell(w.explain(w.known))
	}
	if w.known.input == passes && w.known.forwarding == passes {
		return lookInterval
	}
	return retryInterval
}

// failed says an error once.
func (w *Watch) failed(ctx context.Context, err error) {
	if ctx.Err() == nil && w.said != err.Error() {
		w.said = err.Error()
		w.Logger.Warn("whether a firewall of this machine blocks pods is not known", "err", err)
	}
}

func (w *Watch) tell(p nodefirewall.Problem) {
	if w.told == nil || *w.told != p {
		w.told = &p
		w.Tell(p)
	}
}

// rest waits until it is time to probe again; false: ctx has ended. Probes make interfaces, so what wakes it is a change only if it is one
// of nftables.
func (w *Watch) rest(ctx context.Context, interval time.Duration) bool {
	if !wait.For(ctx, restTime) {
		return false
	}
	timer := time.NewTimer(interval - restTime)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-w.woken:
			if now, err := w.generation(); err == nil && now != w.seen {
				return wait.For(ctx, settleTime)
			}
		}
	}
}
