package eviction

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/base/events"
	"github.com/setpoint-io/setpoint/agent/base/wait"
	"github.com/setpoint-io/setpoint/agent/pods/status"
)

const (
	// every is the pause between two looks, upstream's.
	every = 10 * time.Second
	// graceAtOnce, in seconds, is all that containers get when a limit or a hard threshold is crossed.
	graceAtOnce = 1
	// cleanupTimeout is how long the next look waits for what an evicted pod held, cleanupPoll how often it asks.
	cleanupTimeout = 30 * time.Second
	cleanupPoll    = time.Second
)

// Pods are those that run on this node; a pods.Manager.
type Pods interface {
	Active() []*corev1.Pod
	Evict(uid types.UID, why status.Rejection) bool
	// Ending: an evicted pod still holds something of the node.
	Ending(uid types.UID) bool
}

// Config of Run. Pods and Measure are required; the others are, if Policy has thresholds.
type Config struct {
	NodeName string
	Policy   Policy
	Pods     Pods
	// Observe looks at the machine.
	Observe func(context.Context) (Observations, Layout, error)
	// Measure says what a pod has on the disk, Live what all pods use right now.
	Measure func(context.Context, *corev1.Pod) (Usage, error)
	Live    func(context.Context) (map[types.UID]Live, error)
	// Reclaim frees disks of what no pod needs: containers that have ended and images that nobody uses.
	Reclaim func(context.Context) error
	// Conditions are brought up to date at each look; Changed is called when they change.
	Conditions *Conditions
	Changed    func()
	Events     events.Recorder
	Logger     *slog.Logger
}

// Run evicts pods until ctx ends.
func Run(ctx context.Context, cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	e := &evictor{Config: cfg}
	for ctx.Err() == nil {
		if evicted := e.look(ctx); len(evicted) > 0 {
			e.awaitCleanup(ctx, evicted)
			continue // at once: there may be more to do
		}
		wait.For(ctx, every)
	}
}

// evictor remembers what it saw from look to look.
type evictor struct {
	Config
	memory memory
}

// look evicts all pods that exceed limits of their own or, if there are none, one pod for the node.
func (e *evictor) look(ctx context.Context) []types.UID {
	seen, layout, due := e.observe(ctx)
	if evicted := e.enforceLimits(ctx); len(evicted) > 0 || len(due) == 0 {
		return evicted
	}
	return e.relieve(ctx, due, seen, layout)
}

// awaitCleanup returns when nothing of the pods is left, or after a while: then the next look may find too little freed.
func (e *evictor) awaitCleanup(ctx context.Context, evicted []types.UID) {
	for began := time.Now(); time.Since(began) < cleanupTimeout && wait.For(ctx, cleanupPoll); {
		ending := false
		for _, uid := range evicted {
			ending = ending || e.Pods.Ending(uid)
		}
		if !ending {
			return
		}
	}
}

// enforceLimits evicts every pod that exceeds a limit of its own.
func (e *evictor) enforceLimits(ctx context.Context) []types.UID {
	var evicted []types.UID
	for _, pod := range e.Pods.Active() {
		if critical(pod) || !limited(pod) {
			continue
		}
		use, err := e.Measure(ctx, pod)
		if err != nil {
			e.Logger.Warn("cannot measure what a pod has on the disk", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			continue
		}
		if message := overLimit(pod, use); message != "" {
			grace := int64(graceAtOnce)
			if e.Pods.Evict(pod.UID, status.Rejection{Reason: events.Evicted, Message: message, GraceSeconds: &grace}) {
				evicted = append(evicted, pod.UID)
			}
		}
	}
	return evicted
}
