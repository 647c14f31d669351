package eviction

import (
	"context"
	"log/slog"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/events"
	"github.com/setpoint-io/setpoint/agent/status"
	"github.com/setpoint-io/setpoint/agent/wait"
)

const (
	// every is the pause between two looks, upstream's.
	every = 10 * time.Second
	// graceAtOnce, in seconds, is all that containers get when a limit is exceeded.
	graceAtOnce = 1
)

// Pods are those that run on this node; a pods.Manager.
type Pods interface {
	Active() []*corev1.Pod
	Evict(uid types.UID, why status.Rejection) bool
}

// Config of Run. Pods and Measure are required.
type Config struct {
	Pods Pods
	// Measure says what a pod has on the disk.
	Measure func(context.Context, *corev1.Pod) (Usage, error)
	Logger  *slog.Logger
}

// Run evicts pods until ctx ends.
func Run(ctx context.Context, cfg Config) {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	for wait.For(ctx, every) {
		cfg.enforceLimits(ctx)
	}
}

// enforceLimits evicts every pod that exceeds a limit of its own.
func (cfg *Config) enforceLimits(ctx context.Context) {
	for _, pod := range cfg.Pods.Active() {
		if critical(pod) || !limited(pod) {
			continue
		}
		use, err := cfg.Measure(ctx, pod)
		if err != nil {
			cfg.Logger.Warn("cannot measure what a pod has on the disk", "pod", pod.Namespace+"/"+pod.Name, "err", err)
			continue
		}
		if message := overLimit(pod, use); message != "" {
			grace := int64(graceAtOnce)
			cfg.Pods.Evict(pod.UID, status.Rejection{Reason: events.Evicted, Message: message, GraceSeconds: &grace})
		}
	}
}
