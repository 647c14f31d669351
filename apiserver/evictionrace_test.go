package apiserver

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// behind is one of several replicas of a log: what it has of itself is some moment of the past.
type behind struct {
	*raftstoretest.Local
	mu     sync.Mutex
	random *rand.Rand
	seen   *state.Root
	// wrote are the commands that this replica proposed with success, as the keys that they write.
	wrote [][]string
}

func (b *behind) Root() *state.Root {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.seen == nil || b.random.IntN(4) == 0 {
		b.seen = b.Local.Root()
	}
	return b.seen
}

func (b *behind) Propose(ctx context.Context, c command.Command) (command.Result, error) {
	result, err := b.Local.Propose(ctx, c)
	if err != nil || result.Code != command.OK {
		return result, err
	}
	var keys []string
	for _, op := range c.Ops {
		if op.Kind == command.Put || op.Kind == command.Delete {
			keys = append(keys, op.Key)
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.wrote = append(b.wrote, keys)
	return result, nil
}

// replicas are servers over one log.
func replicas(t *testing.T, n int, seed uint64) (servers []*Server, clients []kubernetes.Interface, logs []*behind) {
	t.Helper()
	log := raftstoretest.NewLocal(state.Options{})
	for i := range n {
		logs = append(logs, &behind{Local: log, random: rand.New(rand.NewPCG(seed, uint64(i)))})
		config := serverConfig(t, logs[i])
		if i == 0 {
			server, client := startServer(t, config)
			servers, clients = append(servers, server), append(clients, client)
			continue
		}
		server, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		servers, clients = append(servers, server), append(clients, clientFor(t, server))
	}
	return servers, clients, logs
}

// TestEvictionsNeverOverspend: of many evictions at once, through replicas that lag, as many succeed as the budget
// allows, and each is one transaction with what it costs.
func TestEvictionsNeverOverspend(t *testing.T) {
	const pods, allowed = 12, 5
	for seed := range uint64(5) {
		servers, clients, logs := replicas(t, 3, seed)
		for i := range pods {
			runningPod(t, servers[0], fmt.Sprintf("p%d", i), "True")
		}
		budget(t, servers[0], "web", fmt.Sprintf(`{"disruptionsAllowed":%d,"currentHealthy":%d,"desiredHealthy":%d,"expectedPods":%d,"observedGeneration":1}`,
			allowed, pods, pods-allowed, pods))
		var wg sync.WaitGroup
		var mu sync.Mutex
		evicted := map[string]bool{}
		for i := range 3 * pods {
			name, client := fmt.Sprintf("p%d", i%pods), clients[(i+i/pods)%3]
			wg.Go(func() {
				err := client.PolicyV1().Evictions("default").Evict(t.Context(), eviction(name))
				mu.Lock()
				defer mu.Unlock()
				switch {
				case err == nil:
					evicted[name] = true
				case !apierrors.IsTooManyRequests(err):
					t.Errorf("%s: %v", name, err)
				}
			})
		}
		wg.Wait()
		judgeEvicted(t, clients[1], logs, evicted, allowed)
	}
}

// judgeEvicted compares what evictions answered with what is stored.
func judgeEvicted(t *testing.T, client kubernetes.Interface, logs []*behind, evicted map[string]bool, allowed int) {
	t.Helper()
	web, err := client.PolicyV1().PodDisruptionBudgets("default").Get(t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	going := 0
	for _, pod := range list.Items {
		_, noted := web.Status.DisruptedPods[pod.Name]
		if goes := pod.DeletionTimestamp != nil; goes != noted || goes != evicted[pod.Name] {
			t.Errorf("%s: goes %v, noted %v, answered %v", pod.Name, goes, noted, evicted[pod.Name])
		} else if goes {
			going++
		}
	}
	if going != allowed || web.Status.DisruptionsAllowed != 0 {
		t.Errorf("%d pods go, %d more may; want %d and 0", going, web.Status.DisruptionsAllowed, allowed)
	}
	paid := 0
	for _, log := range logs {
		for _, keys := range log.wrote {
			joined := strings.Join(keys, " ")
			if len(keys) == 2 && strings.Contains(joined, "/poddisruptionbudgets/") && strings.Contains(joined, "/pods/") {
				paid++
			}
		}
	}
	if paid != allowed {
		t.Errorf("%d transactions write a pod and its budget, want %d", paid, allowed)
	}
}

// TestAReplicaThatLagsKnowsOfNewBudgets: it must not evict a pod because it has not heard of the budget.
func TestAReplicaThatLagsKnowsOfNewBudgets(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{})
	server, _ := newServerWith(t, log)
	runningPod(t, server, "a", "True")
	late := &lagging{Log: log}
	late.stuck.Store(log.Root())
	lagger, err := New(serverConfig(t, late))
	if err != nil {
		t.Fatal(err)
	}
	budget(t, server, "web", `{"observedGeneration":1}`) // else the client would wait and try again
	client, of := clientFor(t, lagger), eviction("a")
	for _, dryRun := range [][]string{{metav1.DryRunAll}, nil} {
		of.DeleteOptions = &metav1.DeleteOptions{DryRun: dryRun}
		if err := client.PolicyV1().Evictions("default").Evict(t.Context(), of); !apierrors.IsTooManyRequests(err) {
			t.Errorf("dry run %v: %v", dryRun, err)
		}
	}
}

func eviction(name string) *policyv1.Eviction {
	return &policyv1.Eviction{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
}

// TestEvictionOptions: what deleteOptions ask for is done, and an eviction that fails costs nothing.
func TestEvictionOptions(t *testing.T) {
	server, client := newServer(t)
	runningPod(t, server, "a", "True")
	budget(t, server, "web", `{"disruptionsAllowed":1,"currentHealthy":2,"desiredHealthy":1,"expectedPods":2,"observedGeneration":1}`)
	evict := func(options *metav1.DeleteOptions) error {
		of := eviction("a")
		of.DeleteOptions = options
		return client.PolicyV1().Evictions("default").Evict(t.Context(), of)
	}
	allowed := func() int32 {
		return mustDo[policyv1.PodDisruptionBudget](t, server, call{path: pdbPath + "/web"}).Status.DisruptionsAllowed
	}
	pod := mustDo[corev1.Pod](t, server, call{path: podPath + "/a"})
	for name, options := range map[string]*metav1.DeleteOptions{
		"another uid":             {Preconditions: metav1.NewUIDPreconditions("x")},
		"an old version":          {Preconditions: metav1.NewRVDeletionPrecondition("1").Preconditions},
		"another uid, in dry run": {Preconditions: metav1.NewUIDPreconditions("x"), DryRun: []string{metav1.DryRunAll}},
	} {
		if err := evict(options); !apierrors.IsConflict(err) || allowed() != 1 {
			t.Errorf("%s: %v, and %d are allowed", name, err, allowed())
		}
	}
	if err := evict(&metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}); err != nil || allowed() != 1 {
		t.Errorf("dry run: %v, and %d are allowed", err, allowed())
	}
	uid := metav1.NewUIDPreconditions(string(pod.UID))
	uid.ResourceVersion = &pod.ResourceVersion
	if err := evict(&metav1.DeleteOptions{Preconditions: uid, GracePeriodSeconds: new(int64(7))}); err != nil || allowed() != 0 {
		t.Errorf("this pod at this version: %v, and %d are allowed", err, allowed())
	}
	if gone := mustDo[corev1.Pod](t, server, call{path: podPath + "/a"}); *gone.DeletionGracePeriodSeconds != 7 {
		t.Errorf("grace period %d", *gone.DeletionGracePeriodSeconds)
	}
	if err := evict(nil); err != nil {
		t.Errorf("a pod that goes already: %v", err)
	}
	runningPod(t, server, "b", "False")
	patch, _ := json.Marshal(map[string]any{"status": map[string]any{"phase": "Failed"}})
	if _, err := client.CoreV1().Pods("default").Patch(t.Context(), "b", types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		t.Fatal(err)
	}
	err := client.PolicyV1().Evictions("default").Evict(t.Context(), eviction("b"))
	if err != nil || allowed() != 0 {
		t.Errorf("a pod that has ended: %v", err)
	}
}
