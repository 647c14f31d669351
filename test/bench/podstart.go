package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// podStart is what a watch has shown of one pod.
type podStart struct {
	created, bound, running time.Time
}

// podStarts follows the pods of one namespace.
type podStarts struct {
	mu    sync.Mutex
	pods  map[string]*podStart
	gone  map[string]bool
	event chan struct{}
}

func (s *podStarts) see(ev podEvent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pods[ev.pod.Name]
	if p == nil {
		p = &podStart{created: ev.at}
		s.pods[ev.pod.Name] = p
	}
	if p.bound.IsZero() && ev.pod.Spec.NodeName != "" {
		p.bound = ev.at
	}
	if p.running.IsZero() && ev.pod.Status.Phase == corev1.PodRunning {
		p.running = ev.at
	}
	s.gone[ev.pod.Name] = ev.kind == "DELETED"
	select {
	case s.event <- struct{}{}:
	default:
	}
}

// await waits until ok, called with s locked, says so.
func (s *podStarts) await(ctx context.Context, limit time.Duration, ok func() bool) bool {
	deadline := time.After(limit)
	for {
		s.mu.Lock()
		done := ok()
		s.mu.Unlock()
		if done {
			return true
		}
		select {
		case <-s.event:
		case <-deadline:
			return false
		case <-ctx.Done():
			return false
		}
	}
}

// runPodstart starts real pods, one after another, on a real node.
func runPodstart(ctx context.Context, args []string) {
	o := newOptions("podstart")
	image := o.String("image", "setpoint.local/demo:v1", "image of the pods; it should be on the node")
	samples := o.Int("samples", 20, "pods to start, one after another")
	limit := o.Duration("limit", time.Minute, "give up on a pod after")
	c := o.open(args)
	ns := c.namespace(ctx, "bench-podstart")
	defer c.deleteNamespace(ns)
	starts := &podStarts{pods: map[string]*podStart{}, gone: map[string]bool{}, event: make(chan struct{}, 1)}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go watchPods(watching, c, ns, starts.see)

	toBound, toRunning := &latencies{}, &latencies{}
	before := measure(c.pids)
	for i := range *samples {
		p, err := starts.one(ctx, c, ns, fmt.Sprintf("p-%d", i), *image, *limit)
		if err != nil {
			fatalf("sample %d: %v", i, err)
		}
		toBound.add(p.bound.Sub(p.created))
		toRunning.add(p.running.Sub(p.bound))
	}
	m := metrics{"samples": float64(*samples)}
	before.since(m, c.pids)
	toBound.into(m, "exists_to_bound_")
	toRunning.into(m, "bound_to_running_")
	emit("podstart", "pod", c.target, map[string]any{"image": *image, "replicas": len(c.configs)}, []metrics{m})
}

// one starts a pod, and deletes it when it runs.
func (s *podStarts) one(ctx context.Context, c *cluster, ns, name, image string, limit time.Duration) (podStart, error) {
	pods := c.client(0).CoreV1().Pods(ns)
	grace := int64(1)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			TerminationGracePeriodSeconds: &grace,
			Containers:                    []corev1.Container{{Name: "c", Image: image, ImagePullPolicy: corev1.PullIfNotPresent}},
		},
	}
	if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return podStart{}, err
	}
	if !s.await(ctx, limit, func() bool { return s.pods[name] != nil && !s.pods[name].running.IsZero() }) {
		return podStart{}, fmt.Errorf("the pod does not run after %s", limit)
	}
	if err := pods.Delete(ctx, name, metav1.DeleteOptions{}); ignoreGone(err) != nil {
		return podStart{}, err
	}
	if !s.await(ctx, limit, func() bool { return s.gone[name] }) {
		return podStart{}, fmt.Errorf("the pod is not gone after %s", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return *s.pods[name], nil
}
