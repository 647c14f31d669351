//go:build compose

package compose

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// The bounds that a killed leader must keep.
const (
	writeGapLimit    = 5 * time.Second
	replacementLimit = 3 * time.Second
	settleBefore     = 2 * time.Second
	settleAfter      = 4 * time.Second
)

// TestLeaderKilled kills the acting server while clients write through all three
// addresses: nothing acknowledged is lost, and the control loops act again.
func TestLeaderKilled(t *testing.T) {
	c := connect(t)
	c.deploy(t, "leader-kill", 3)
	for round := range kills(t) {
		before, err := c.leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		victim, _, _ := strings.Cut(before, "_")
		w := c.startWriters(t, round)
		time.Sleep(settleBefore)
		docker(t, "kill", victim)
		replaced := c.replacePod(t)
		time.Sleep(settleAfter)
		w.stop()
		after, err := c.leader(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		docker(t, "start", victim)
		c.waitServers(t)
		lost := c.lost(t, w)
		t.Logf("kill %d: %s; write gap %v, deleted pod replaced %v after the kill, holder %s to %s, %d writes acknowledged, %d lost",
			round+1, victim, w.gap().Round(time.Millisecond), replaced.Round(time.Millisecond), before, after, len(w.acked), lost)
		if lost > 0 || before == after || w.gap() > writeGapLimit || replaced > replacementLimit {
			t.Errorf("kill %d broke a promise", round+1)
		}
	}
}

// replacePod deletes a pod as soon as somebody answers, and waits for its
// replacement; the time runs from the call.
func (c *cluster) replacePod(t *testing.T) time.Duration {
	t.Helper()
	start := time.Now()
	had := map[string]bool{}
	eventually(t, time.Minute, func(ctx context.Context) string {
		pods, err := c.pods(ctx, "leader-kill")
		if err != nil || len(pods) == 0 {
			return fmt.Sprint("no pods: ", err)
		}
		for _, pod := range pods {
			had[pod.Name] = true
		}
		_, err = answer(ctx, c, func(client kubernetes.Interface) (struct{}, error) {
			return struct{}{}, client.CoreV1().Pods("default").Delete(ctx, pods[0].Name, metav1.DeleteOptions{})
		})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	eventually(t, time.Minute, func(ctx context.Context) string {
		pods, err := c.pods(ctx, "leader-kill")
		if err != nil {
			return err.Error()
		}
		for _, pod := range pods {
			if !had[pod.Name] {
				return ""
			}
		}
		return "no new pod"
	})
	return time.Since(start)
}

// waitServers waits until every server answers again.
func (c *cluster) waitServers(t *testing.T) {
	t.Helper()
	eventually(t, time.Minute, func(ctx context.Context) string {
		for i, client := range c.clients {
			if _, err := client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{}); err != nil {
				return serverName(i) + ": " + err.Error()
			}
		}
		return ""
	})
}

// writers write through every server until stopped.
type writers struct {
	cancel context.CancelFunc
	wg     sync.WaitGroup
	mu     sync.Mutex
	acked  []string
	times  []time.Time
}

const writersPerServer = 2

func (c *cluster) startWriters(t *testing.T, round int) *writers {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	w := &writers{cancel: cancel}
	for i := range c.clients {
		for n := range writersPerServer {
			w.wg.Go(func() { w.run(ctx, c, i, fmt.Sprintf("gap-%d-%d-%d", round, i, n)) })
		}
	}
	return w
}

// run creates objects through its server, and through the next when that fails.
func (w *writers) run(ctx context.Context, c *cluster, server int, prefix string) {
	for i := 0; ctx.Err() == nil; i++ {
		name := fmt.Sprintf("%s-%d", prefix, i)
		cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": "gap"}}}
		if _, err := c.clients[server].CoreV1().ConfigMaps("default").Create(ctx, cm, metav1.CreateOptions{}); err != nil {
			server = (server + 1) % len(c.clients)
			continue
		}
		w.mu.Lock()
		w.acked, w.times = append(w.acked, name), append(w.times, time.Now())
		w.mu.Unlock()
	}
}

func (w *writers) stop() {
	w.cancel()
	w.wg.Wait()
}

// gap is the longest time without any acknowledged write.
func (w *writers) gap() time.Duration {
	longest := time.Duration(0)
	for i := 1; i < len(w.times); i++ {
		longest = max(longest, w.times[i].Sub(w.times[i-1]))
	}
	return longest
}

// lost counts acknowledged objects that a consistent list of any server misses.
func (c *cluster) lost(t *testing.T, w *writers) int {
	t.Helper()
	worst := 0
	for i, client := range c.clients {
		list, err := client.CoreV1().ConfigMaps("default").List(t.Context(), metav1.ListOptions{LabelSelector: "test=gap"})
		if err != nil {
			t.Fatalf("%s: %v", serverName(i), err)
		}
		have := map[string]bool{}
		for _, cm := range list.Items {
			have[cm.Name] = true
		}
		missing := 0
		for _, name := range w.acked {
			if !have[name] {
				missing++
			}
		}
		worst = max(worst, missing)
	}
	return worst
}
