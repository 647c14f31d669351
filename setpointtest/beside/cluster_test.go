package beside_test

import (
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"

	setpointtest "github.com/setpoint-io/setpoint/setpointtest/beside"
)

const configMap = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"

func TestForkMarkReset(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Loops: setpointtest.APIOnly})
	client := kubernetes.NewForConfigOrDie(c.RESTConfig())
	mark := c.Mark()
	c.Apply(configMap)
	f := c.Fork(t)
	f.Delete("configmap/a")
	if f.Get("configmap/a") != nil || c.Get("configmap/a") == nil {
		t.Error("the fork has no future of its own")
	}
	c.Reset(mark)
	if c.Get("configmap/a") != nil {
		t.Error("it was not reset")
	}
	if _, err := client.CoreV1().ConfigMaps("default").Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a client from before the reset: %v", err)
	}
	if _, err := c.As("eve").Kubernetes().CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("eve may list secrets: %v", err)
	}
}

func TestAdvance(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Nodes: 2})
	c.Apply("../testdata/web.yaml")
	c.Eventually("deployment/web", setpointtest.Available)
	if events := c.Events("deployment/web"); len(events) == 0 || events[0].Reason != "ScalingReplicaSet" {
		t.Errorf("Events of the deployment: %v", events)
	}
	c.KillNode("sim-1")
	c.Advance(2 * time.Minute)
	c.Eventually("node/sim-1", setpointtest.That("not Ready", func(node *unstructured.Unstructured) bool {
		taints, _, _ := unstructured.NestedSlice(node.Object, "spec", "taints")
		return len(taints) > 0
	}))
	c.StartNode("sim-1")
	c.Advance(20 * time.Second)
	c.Eventually("node/sim-1", setpointtest.Ready)
}

// TestParallel: 20 clusters at once, of one template.
func TestParallel(t *testing.T) {
	template := setpointtest.NewTemplate(setpointtest.Config{Loops: setpointtest.APIOnly}, func(c *setpointtest.Cluster) { c.Apply(configMap) })
	for i := range 20 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			c := template.Fork(t)
			c.Delete("configmap/a")
			c.Eventually("configmap/a", setpointtest.Gone)
		})
	}
}
