package setpointtest_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// example runs the body of a test once, as `go test` would without -v, whose lines would count as output.
func example(test func(t *testing.T)) {
	for name, value := range map[string]string{"test.v": "false", "test.count": "1"} {
		set := flag.Lookup(name).Value
		was := set.String()
		_ = set.Set(value)
		defer func() { _ = set.Set(was) }()
	}
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, []testing.InternalTest{{Name: "Example", F: test}})
}

func Example() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Nodes: 3})
		c.Apply("testdata/web.yaml")
		web := c.Eventually("deployment/web", setpointtest.Available)
		fmt.Println(web.GetName(), "is available")
	})
	// Output: web is available
}

func ExampleCluster_RESTConfig() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		client := kubernetes.NewForConfigOrDie(c.RESTConfig())
		namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Println(len(namespaces.Items), "namespaces")
	})
	// Output: 4 namespaces
}

// A Runnable is a program under test, such as controller-runtime's Manager. This one labels what it sees.
func ExampleCluster_Run() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		maps := c.Kubernetes().CoreV1().ConfigMaps("default")
		c.Run(setpointtest.RunnableFunc(func(ctx context.Context) error {
			w, err := maps.Watch(ctx, metav1.ListOptions{})
			if err != nil {
				return err
			}
			defer w.Stop()
			for event := range w.ResultChan() {
				object, ok := event.Object.(*corev1.ConfigMap)
				if !ok || object.Labels["seen"] != "" {
					continue
				}
				object.Labels = map[string]string{"seen": "yes"}
				if _, err := maps.Update(ctx, object, metav1.UpdateOptions{}); err != nil && ctx.Err() == nil {
					return err
				}
			}
			return ctx.Err()
		}))
		c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		c.Eventually("configmap/a", setpointtest.Field("seen", "yes", "metadata", "labels", "seen"))
		c.NoWritesWhenQuiet()
		fmt.Println("seen, and quiet")
	})
	// Output: seen, and quiet
}

// A day takes as long as what happens in it.
func ExampleCluster_Advance() {
	example(func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
			c.Apply("testdata/web.yaml")
			c.Eventually("deployment/web", setpointtest.Available)
			c.KillNode("sim-1")
			c.Advance(7 * time.Minute) // 40 seconds until it counts as lost, five minutes until its pods are evicted
			c.Eventually("deployment/web", setpointtest.Available)
			fmt.Println("available again")
		})
	})
	// Output: available again
}

// Each fork has its own future.
func ExampleCluster_Fork() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		f := c.Fork(t)
		f.Delete("configmap/a")
		fmt.Println("in the fork:", f.Get("configmap/a") != nil)
		fmt.Println("in its origin:", c.Get("configmap/a") != nil)
	})
	// Output:
	// in the fork: false
	// in its origin: true
}

func ExampleCluster_Reset() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		mark := c.Mark()
		c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
		c.Reset(mark)
		fmt.Println(c.Get("configmap/a"))
	})
	// Output: <nil>
}

func ExampleNewTemplate() {
	shops := setpointtest.NewTemplate(setpointtest.Config{CRDs: []string{"testdata/crd"}}, func(c *setpointtest.Cluster) {
		c.Apply("{apiVersion: example.com/v1, kind: Shop, metadata: {name: blue}, spec: {size: 3}}")
	})
	for range 2 {
		example(func(t *testing.T) {
			c := shops.Fork(t) // in the first test it is filled, in the others it is there
			fmt.Println(c.Get("shop/blue").GetName())
		})
	}
	// Output:
	// blue
	// blue
}

// The answer to the second create is lost: the client cannot know that it was done.
func ExampleCluster_Inject() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		c.Inject(setpointtest.Fault{Verb: "create", Kind: "configmaps", Nth: 2, Effect: setpointtest.LoseAnswer})
		maps := c.Kubernetes().CoreV1().ConfigMaps("default")
		for _, name := range []string{"a", "b"} {
			_, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
			fmt.Println(name, "answered:", err == nil, "- done:", c.Get("configmap/"+name) != nil)
		}
	})
	// Output:
	// a answered: true - done: true
	// b answered: false - done: true
}

func ExampleCluster_As() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		_, err := c.As("eve").Kubernetes().CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{})
		fmt.Println("forbidden:", apierrors.IsForbidden(err))
	})
	// Output: forbidden: true
}

func ExampleCluster_Kubeconfig() {
	example(func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{})
		_, err := os.Stat(c.Kubeconfig()) // for programs that are other processes
		fmt.Println("missing:", errors.Is(err, os.ErrNotExist))
	})
	// Output: missing: false
}
