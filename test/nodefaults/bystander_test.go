package nodefaults

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

const (
	bystanderName = "bystander"
	askEvery      = 100 * time.Millisecond
	answerTimeMax = 2 * time.Second
	// silenceMax is how long the bystander may not run or not answer: a busy machine keeps everybody waiting for a while, a fault
	// that stops it does so until it is over.
	silenceMax = 8 * time.Second
)

// bystander is a pod that was there before all faults.
type bystander struct {
	n      *node
	before identity
	url    string
	client *http.Client
}

// identity of a pod that was left alone stays the same.
type identity struct {
	UID, Container, IP string
	Restarts           int32
	Started            int64
}

// state is what the workload answers (workload/main.go).
type state struct {
	Started, GapMilliseconds int64
	Probes                   int
}

func startBystander(t *testing.T, n *node) *bystander {
	t.Helper()
	pod := newPod(bystanderName)
	pod.Labels = nil
	pod.Spec.Containers[0].Args = []string{"serve", bystanderName}
	pod.Spec.Containers[0].LivenessProbe = &corev1.Probe{PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 5, ProbeHandler: corev1.ProbeHandler{
		HTTPGet: &corev1.HTTPGetAction{Path: "/probe", Port: intstr.FromInt32(8080)},
	}}
	n.create(t, pod)
	n.awaitReady(t, bystanderName)
	b := &bystander{n: n, client: &http.Client{Timeout: answerTimeMax}}
	pod, err := n.pods().Get(t.Context(), bystanderName, metav1.GetOptions{})
	check(t, err)
	b.url = "http://" + pod.Status.PodIP + ":8080"
	n.await(t, podTimeMax, "the bystander's answer", func(ctx context.Context) string {
		if _, err := b.ask(ctx, "/"); err != nil {
			return err.Error()
		}
		return ""
	})
	b.before, err = b.identity(t.Context())
	check(t, err)
	return b
}

func (b *bystander) ask(ctx context.Context, path string) (state, error) {
	var now state
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, b.url+path, nil)
	if err != nil {
		return now, err
	}
	response, err := b.client.Do(request)
	if err != nil {
		return now, err
	}
	defer response.Body.Close()
	return now, json.NewDecoder(response.Body).Decode(&now)
}

func (b *bystander) identity(ctx context.Context) (identity, error) {
	pod, err := b.n.pods().Get(ctx, bystanderName, metav1.GetOptions{})
	if err != nil {
		return identity{}, err
	}
	if len(pod.Status.ContainerStatuses) == 0 {
		return identity{}, fmt.Errorf("the bystander has no containers: %+v", pod.Status)
	}
	container := pod.Status.ContainerStatuses[0]
	now, err := b.ask(ctx, "/")
	return identity{string(pod.UID), container.ContainerID, pod.Status.PodIP, container.RestartCount, now.Started}, err
}

// awaitProbes waits until the node's agent has asked a few times how the bystander is.
func (b *bystander) awaitProbes(t *testing.T) {
	t.Helper()
	first, err := b.ask(t.Context(), "/")
	check(t, err)
	b.n.await(t, podTimeMax, "probes of the bystander", func(ctx context.Context) string {
		now, err := b.ask(ctx, "/")
		if err != nil {
			return err.Error()
		}
		if now.Probes < first.Probes+2 {
			return fmt.Sprintf("%d probes, before %d", now.Probes, first.Probes)
		}
		return ""
	})
}

// awaitLog waits until what the bystander says now is in its log.
func (b *bystander) awaitLog(t *testing.T) {
	t.Helper()
	began, lines := time.Now(), int64(1)
	b.n.await(t, podTimeMax, "the bystander's log", func(ctx context.Context) string {
		log, err := b.n.pods().GetLogs(bystanderName, &corev1.PodLogOptions{TailLines: &lines}).DoRaw(ctx)
		if err != nil {
			return err.Error()
		}
		at, err := strconv.ParseInt(strings.TrimSpace(string(log)), 10, 64)
		if err != nil || at < began.UnixNano() {
			return fmt.Sprintf("its last line is %v old: %v", began.Sub(time.Unix(0, at)), err)
		}
		return ""
	})
}

// vigil is over the bystander during a fault.
type vigil struct {
	b       *bystander
	cancel  context.CancelFunc
	silence chan time.Duration // the longest, when the vigil has ended
}

func (b *bystander) watch(t *testing.T) *vigil {
	t.Helper()
	_, err := b.ask(t.Context(), "/again")
	check(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	w := &vigil{b: b, cancel: cancel, silence: make(chan time.Duration, 1)}
	go func() { w.silence <- b.listen(ctx) }()
	return w
}

// listen is the longest time between two answers.
func (b *bystander) listen(ctx context.Context) (longest time.Duration) {
	tick := time.NewTicker(askEvery)
	defer tick.Stop()
	for last := time.Now(); ; {
		if _, err := b.ask(ctx, "/"); err == nil {
			longest, last = max(longest, time.Since(last)), time.Now()
		}
		select {
		case <-ctx.Done():
			return max(longest, time.Since(last))
		case <-tick.C:
		}
	}
}

// end says whether the bystander has noticed anything.
func (w *vigil) end(t *testing.T) {
	t.Helper()
	w.b.awaitLog(t)
	w.cancel()
	silence := <-w.silence
	now, err := w.b.identity(t.Context())
	check(t, err)
	if diff := cmp.Diff(w.b.before, now); diff != "" {
		t.Errorf("the bystander is another one: %s", diff)
	}
	inside, err := w.b.ask(t.Context(), "/")
	check(t, err)
	gap := time.Duration(inside.GapMilliseconds) * time.Millisecond
	if silence > silenceMax || gap > silenceMax {
		t.Errorf("the bystander did not answer for %v and did not run for %v", silence, gap)
	}
	t.Logf("the bystander was silent for %v and stood still for %v at most", silence, gap)
}
