package nodefaults

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// crowdPods come and go at once, unless podsVariable says how many.
	crowdPods, crowdPodsShort = 1000, 250
	// creators is how many clients create pods beside each other.
	creators = 8
	// stayEach is how many pods there are for each that is not deleted while it starts.
	stayEach = 5
	// crowdKillTimeMax is within which the agent is killed, once all pods are created.
	crowdKillTimeMax = 5 * time.Second
	// crowdTimeMax bounds each half, on a machine that does much else.
	crowdTimeMax = 5 * time.Minute
)

// crowd: many pods are created at once, and most are deleted while they start; the agent is killed in the middle. Those that stay are ready
// in the end, and then all go.
func crowd(t *testing.T, n *node) {
	pods := rounds(crowdPods, crowdPodsShort)
	if text := os.Getenv(podsVariable); text != "" {
		var err error
		pods, err = strconv.Atoi(text)
		check(t, err)
	}
	began := time.Now()
	watcher, err := n.pods().Watch(t.Context(), metav1.ListOptions{LabelSelector: faultLabel})
	check(t, err)
	defer watcher.Stop()
	gone, random := make(chan struct{}), rand.New(rand.NewPCG(n.random.Uint64(), 0)) // one goroutine each
	go func() { defer close(gone); n.deleteStarting(t, watcher, random, pods-(pods+stayEach-1)/stayEach) }()
	n.createCrowd(t, pods)
	t.Logf("created after %v", time.Since(began))
	n.pause(t, crowdKillTimeMax)
	n.killAgent(t)
	n.startAgent(t)
	select {
	case <-gone:
	case <-time.After(crowdTimeMax):
		t.Fatalf("not all pods that are deleted have gone: %s", n.states(t.Context(), t))
	}
	t.Logf("those that were deleted were gone after %v", time.Since(began))
	n.await(t, crowdTimeMax, "pods that stay", func(ctx context.Context) string {
		if now := n.states(ctx, t); now != fmt.Sprintf("ready: %d", (pods+stayEach-1)/stayEach) {
			return now
		}
		return ""
	})
	t.Logf("the others were ready after %v", time.Since(began))
	check(t, n.pods().DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{LabelSelector: faultLabel}))
	n.await(t, crowdTimeMax, "the crowd", func(ctx context.Context) string { return n.states(ctx, t) })
	t.Logf("all were gone after %v", time.Since(began))
}

func (n *node) createCrowd(t *testing.T, pods int) {
	numbers := make(chan int)
	var clients sync.WaitGroup
	for range creators {
		clients.Go(func() {
			for i := range numbers {
				// All kinds stay, and all are deleted.
				if _, err := n.pods().Create(t.Context(), killPod(fmt.Sprintf("crowd-%d", i), i/stayEach), metav1.CreateOptions{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range pods {
		numbers <- i
	}
	close(numbers)
	clients.Wait()
}

// deleteStarting deletes pods some time after they have got their node, until so many of them are gone.
func (n *node) deleteStarting(t *testing.T, watcher watch.Interface, random *rand.Rand, count int) {
	seen := map[string]bool{}
	for event := range watcher.ResultChan() {
		pod, ok := event.Object.(*corev1.Pod)
		switch {
		case !ok || stays(pod):
		case event.Type == watch.Deleted:
			if count--; count == 0 {
				return
			}
		case pod.Spec.NodeName != "" && !seen[pod.Name]:
			seen[pod.Name] = true
			time.AfterFunc(time.Duration(random.Int64N(int64(killTimeMax))), func() {
				if err := n.pods().Delete(t.Context(), pod.Name, metav1.DeleteOptions{}); err != nil && t.Context().Err() == nil {
					t.Error(err)
				}
			})
		}
	}
}

func stays(pod *corev1.Pod) bool {
	number, err := strconv.Atoi(strings.TrimPrefix(pod.Name, "crowd-"))
	return err == nil && number%stayEach == 0
}

// states counts the crowd's pods by how they are; "" if there are none.
func (n *node) states(ctx context.Context, t *testing.T) string {
	list, err := n.pods().List(ctx, metav1.ListOptions{LabelSelector: faultLabel})
	check(t, err)
	count := map[string]int{}
	for i := range list.Items {
		switch pod := &list.Items[i]; {
		case pod.DeletionTimestamp != nil:
			count["ending"]++
		case isReady(pod) == "":
			count["ready"]++
		default:
			count[string(pod.Status.Phase)]++
		}
	}
	var out []string
	for _, state := range slices.Sorted(maps.Keys(count)) {
		out = append(out, fmt.Sprintf("%s: %d", state, count[state]))
	}
	return strings.Join(out, " ")
}
