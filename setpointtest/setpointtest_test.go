package setpointtest_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/setpointtest"
)

const shop = `
apiVersion: example.com/v1
kind: Shop
metadata: {name: blue}
spec: {size: 3}
`

func TestDeployment(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
	c.Apply("testdata/web.yaml")
	c.Eventually("deployment/web", setpointtest.Available)
	c.Eventually("deploy/web", setpointtest.Ready, setpointtest.True("Progressing"))
	if events := c.Events("deployment/web"); len(events) == 0 || events[0].Reason != "ScalingReplicaSet" {
		t.Errorf("events: %v", events)
	}
	trace := strings.Join(c.Trace(), "\n")
	for _, want := range []string{"create deployments.apps default/web by admin", "create replicasets.apps default/web-", "because of deployments.apps default/web"} {
		if !strings.Contains(trace, want) {
			t.Errorf("the trace lacks %q:\n%s", want, trace)
		}
	}
	if dump := c.Dump(); !strings.Contains(dump, "kind: Deployment") || strings.Contains(dump, "kind: ClusterRole\n") {
		t.Errorf("the dump is %d bytes long and not of what the test made", len(dump))
	}
	c.Delete("deployment/web")
	c.Eventually("deployment/web", setpointtest.Gone)
}

func TestCustomKinds(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{CRDs: []string{"testdata/crd"}})
	c.Apply(shop)
	c.Eventually("shop/blue", setpointtest.Field("of size 3", "3", "spec", "size"))
	c.ApplyObject(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "other"}})
	c.In("other").Apply(shop)
	c.Delete("namespace/other")
	c.Eventually("ns/other", setpointtest.Gone)
	if c.In("other").Get("shops.example.com/blue") != nil {
		t.Error("what was in the namespace is left")
	}
}

func TestUsers(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
	_, err := c.As("eve", "dev").Kubernetes().CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), `User "eve" cannot list resource "secrets"`) {
		t.Errorf("eve lists secrets: %v", err)
	}
}

// TestAPIOnly: nothing acts, and pods need no account, as in envtest.
func TestAPIOnly(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly, DisabledAdmission: []string{"DefaultTolerationSeconds"}})
	c.Apply("{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: a, image: a}]}}", "testdata/web.yaml")
	pod, err := c.Kubernetes().CoreV1().Pods("default").Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil || len(pod.Spec.Tolerations) > 0 {
		t.Errorf("%v, tolerations %v", err, pod.Spec.Tolerations)
	}
	c.Wait()
	pods, err := c.Kubernetes().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 1 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
}

// TestAPIOnlyLeavesUsageOfQuotas to who plays the control loop that counts it, as envtest does. What is charged is counted still.
func TestAPIOnlyLeavesUsageOfQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
		quota := func(secrets int) string {
			return fmt.Sprintf("{apiVersion: v1, kind: ResourceQuota, metadata: {name: q}, spec: {hard: {secrets: %d}}}", secrets)
		}
		used := func() string {
			said, _, _ := unstructured.NestedString(c.Get("resourcequota/q").Object, "status", "used", "secrets")
			return said
		}
		c.Apply(quota(9))
		c.Wait()
		if got := used(); got != "" {
			t.Errorf("somebody counted %s", got)
		}
		_, err := c.Kubernetes().CoreV1().ResourceQuotas("default").Patch(t.Context(), "q", types.MergePatchType,
			[]byte(`{"status":{"hard":{"secrets":"9"},"used":{"secrets":"5"}}}`), metav1.PatchOptions{}, "status")
		if err != nil {
			t.Fatal(err)
		}
		c.Apply(quota(8))
		c.Wait()
		if got := used(); got != "5" {
			t.Errorf("after other limits %s are used", got)
		}
		c.Apply("{apiVersion: v1, kind: Secret, metadata: {name: charged}}")
		if got := used(); got != "1" {
			t.Errorf("the charge counted %s", got)
		}
	})
}

// TestDataDir: what one test wrote, the next one finds.
func TestDataDir(t *testing.T) {
	dir := t.TempDir()
	t.Run("first", func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly, DataDir: dir})
		c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: kept}}")
	})
	t.Run("second", func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly, DataDir: dir})
		c.Eventually("configmap/kept", setpointtest.Exists)
		if _, err := os.Stat(c.Kubeconfig()); err != nil {
			t.Error(err)
		}
	})
}

// TestOnlyLoops: those that are named run.
func TestOnlyLoops(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.Only("deployment-controller")})
	c.Apply("testdata/web.yaml")
	c.Wait()
	sets, err := c.Kubernetes().AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 1 {
		t.Errorf("%d ReplicaSets, %v", len(sets.Items), err)
	}
	pods, err := c.Kubernetes().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(pods.Items) != 0 {
		t.Errorf("%d pods, %v", len(pods.Items), err)
	}
}

// TestFaultsOfLoops: what control loops write can fail too, and they go on.
func TestFaultsOfLoops(t *testing.T) {
	for _, fault := range []setpointtest.Fault{
		{By: "deployment-controller", Verb: "create", Kind: "replicasets.apps", Effect: setpointtest.LoseAnswer},
		{By: "replicaset-controller", Verb: "create", Kind: "pods", Nth: 2, Times: 2, Effect: setpointtest.Unavailable},
		{By: "scheduler", Kind: "pods/binding", Effect: setpointtest.Conflict},
		{By: setpointtest.AnyLoop, Verb: "create", Times: 2, Effect: setpointtest.Unreachable},
	} {
		t.Run(fault.By, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
				injected := c.Inject(fault)
				c.Apply("testdata/web.yaml")
				c.Eventually("deployment/web", setpointtest.Available)
				if injected.Happened() != max(fault.Times, 1) {
					t.Errorf("it happened %d times", injected.Happened())
				}
			})
		})
	}
}

// TestNodeLoss: five minutes after a node falls silent its pods are elsewhere.
func TestNodeLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
		c.Apply("testdata/web.yaml")
		c.Eventually("deployment/web", setpointtest.Available)
		f := c.Fork(t)
		f.KillNode("sim-2")
		f.Advance(time.Minute)
		if node := f.Get("node/sim-2"); node == nil {
			t.Fatal("the node is gone")
		}
		f.Advance(6 * time.Minute)
		pods, err := f.Kubernetes().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Spec.NodeName == "sim-1" && pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		if running != 2 {
			t.Errorf("%d pods run on the node that is left", running)
		}
		f.StartNode("sim-2")
		f.Eventually("node/sim-2", setpointtest.Ready)
	})
}

// TestNodeBlip: a node that is back before its pods are evicted has them ready again.
func TestNodeBlip(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 1})
		c.Apply("testdata/web.yaml")
		c.Eventually("deployment/web", setpointtest.Available)
		before := podsOf(t, c)
		c.KillNode("sim-1")
		c.Advance(2 * time.Minute)
		if c.Get("deployment/web") == nil || isReady(t, c, "sim-1") {
			t.Fatal("the node is not lost")
		}
		c.StartNode("sim-1")
		c.Advance(30 * time.Second)
		c.Eventually("deployment/web", setpointtest.Available)
		for i, pod := range podsOf(t, c) {
			if pod.UID != before[i].UID {
				t.Errorf("%s took the place of %s", pod.Name, before[i].Name)
			}
		}
	})
}

func TestReset(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{})
	client := c.Kubernetes()
	mark := c.Mark()
	for range 2 {
		c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
		c.Reset(mark)
		if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			t.Errorf("after Reset: %v", err)
		}
	}
}

var filled = setpointtest.NewTemplate(setpointtest.Config{CRDs: []string{"testdata/crd"}}, func(c *setpointtest.Cluster) { c.Apply(shop) })

func TestTemplate(t *testing.T) {
	for _, name := range []string{"a", "b", "c"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := filled.Fork(t)
			c.Eventually("shop/blue", setpointtest.Exists)
			c.Delete("shop/blue")
			c.Eventually("shop/blue", setpointtest.Gone)
		})
	}
	t.Run("in a bubble", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := filled.Fork(t)
			c.Advance(time.Hour)
			c.Eventually("shop/blue", setpointtest.Exists)
		})
	})
}

// TestFaults: each effect, counted, and only for the test's clients.
func TestFaults(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
	maps := c.Kubernetes().CoreV1().ConfigMaps("default")
	create := func(name string) error {
		_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		return err
	}
	c.Inject(setpointtest.Fault{Verb: "create", Kind: "configmaps", Nth: 2, Effect: setpointtest.LoseAnswer})
	if err := create("first"); err != nil {
		t.Error(err)
	}
	if err := create("second"); err == nil || c.Get("configmap/second") == nil {
		t.Errorf("a lost answer: %v", err)
	}
	if err := create("third"); err != nil {
		t.Error(err)
	}
	c.Inject(setpointtest.Fault{Verb: "create", Effect: setpointtest.Conflict})
	if err := create("fourth"); !apierrors.IsConflict(err) || c.Get("configmap/fourth") != nil {
		t.Errorf("a conflict: %v", err)
	}
	c.Inject(setpointtest.Fault{Verb: "create", Agent: ".test/", Times: -1, Effect: setpointtest.Fail(http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests, "no")})
	c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: by-helper}\n")
	if err := create("fifth"); !apierrors.IsTooManyRequests(err) {
		t.Errorf("too many requests: %v", err)
	}
}

func TestHeldAndDroppedWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
		w, err := c.Kubernetes().CoreV1().ConfigMaps("default").Watch(t.Context(), metav1.ListOptions{ResourceVersion: c.Get("namespace/default").GetResourceVersion()})
		if err != nil {
			t.Fatal(err)
		}
		seen := func(name string) bool {
			synctest.Wait()
			select {
			case event := <-w.ResultChan():
				object, ok := event.Object.(*corev1.ConfigMap)
				return ok && object.Name == name
			default:
				return false
			}
		}
		apply := func(name string) { c.Apply("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + "}\n") }
		for apply("a"); !seen("a"); { // whatever else was there first
			time.Sleep(time.Millisecond)
		}
		release := c.HoldWatchesOf("admin", "configmaps")
		c.HoldWatchesOf("eve", "")
		apply("b")
		if seen("b") {
			t.Error("a held watch told something")
		}
		release() // those of eve are held still
		if !seen("b") {
			t.Error("a released watch told nothing")
		}
		c.DropWatches("")
		synctest.Wait()
		if _, open := <-w.ResultChan(); open {
			t.Error("a dropped watch goes on")
		}
	})
}

func TestQuiet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 1})
		c.Run(setpointtest.RunnableFunc(func(ctx context.Context) error { // a reconciler that is at rest
			<-ctx.Done()
			return ctx.Err()
		}))
		c.Apply("testdata/web.yaml")
		c.NoWritesWhenQuiet()
	})
}
