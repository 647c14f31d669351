package eviction

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/agent/pods/status"
)

// node is pods that run until they are evicted, and what they have on the disk.
type node struct {
	mu       sync.Mutex
	pods     []*corev1.Pod
	use      map[types.UID]Usage
	measured []types.UID
	evicted  map[types.UID]status.Rejection
}

func (n *node) Active() []*corev1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(n.pods), func(p *corev1.Pod) bool {
		_, gone := n.evicted[p.UID]
		return gone
	})
}

func (n *node) Evict(uid types.UID, why status.Rejection) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.evicted[uid] = why
	return true
}

// gone are those that were evicted so far.
func (n *node) gone() map[types.UID]status.Rejection {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.evicted)
}

// Ending: what was evicted leaves at once.
func (n *node) Ending(types.UID) bool { return false }

func (n *node) measure(_ context.Context, pod *corev1.Pod) (Usage, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.measured = append(n.measured, pod.UID)
	use, ok := n.use[pod.UID]
	if !ok {
		return use, errors.New("the runtime is away")
	}
	return use, nil
}

func (n *node) set(uid types.UID, bytes int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.use[uid] = Usage{Volumes: map[string]Files{"data": {Bytes: bytes}}}
}

func (n *node) add(uid types.UID, pod *corev1.Pod) *corev1.Pod {
	pod.UID = uid
	n.pods = append(n.pods, pod)
	return pod
}

// TestPodsAboveTheirLimitsAreEvicted while those that cannot be measured, are critical or within their limits stay.
func TestPodsAboveTheirLimitsAreEvicted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{evicted: map[types.UID]status.Rejection{}, use: map[types.UID]Usage{}}
		n.add("silent", podOf("1Mi", ""))
		n.add("free", podOf("", "", container("a", "")))
		n.add("within", podOf("1Mi", ""))
		n.set("within", mi)
		high := int32(systemCritical)
		n.add("critical", podOf("1Mi", "")).Spec.Priority = &high
		n.add("above", podOf("1Mi", ""))
		n.set("above", 2*mi)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			Run(ctx, Config{Pods: n, Measure: n.measure, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))})
		}()
		time.Sleep(every + time.Second)
		synctest.Wait()
		why, ok := n.gone()["above"]
		if len(n.gone()) != 1 || !ok {
			t.Fatalf("evicted: %v", n.gone())
		}
		if why.Reason != "Evicted" || why.Disrupted || why.GraceSeconds == nil || *why.GraceSeconds != graceAtOnce {
			t.Errorf("evicted for %+v", why)
		}
		if slices.Contains(n.measured, "free") || slices.Contains(n.measured, "critical") {
			t.Errorf("measured without need: %v", n.measured)
		}
		n.set("within", mi+1)
		time.Sleep(every)
		synctest.Wait()
		if _, ok := n.gone()["within"]; !ok {
			t.Error("a pod that grew above its limit was not evicted")
		}
		cancel()
		<-done
	})
}
