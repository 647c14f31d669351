package setpointtest_test

import (
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// TestReplicas: three servers share a log, and any of them may crash.
func TestReplicas(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{Replicas: 3, Nodes: 2})
	c.Apply("testdata/web.yaml")
	c.Eventually("deployment/web", setpointtest.Available)
	first := c.Leader()
	c.CrashServer(first)
	if second := c.Leader(); second == first {
		t.Fatalf("%s leads though it has crashed", first)
	}
	c.Eventually("deployment/web", setpointtest.Available)
	c.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: after}}")
	c.StartServer(first)
	c.CrashServer(c.Leader())
	c.Eventually("configmap/after", setpointtest.Exists)
}

// TestLeaderCrash: the leader crashes between two writes of a control loop, and the next leader goes on.
func TestLeaderCrash(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := setpointtest.Start(t, setpointtest.Config{Replicas: 3, Nodes: 2})
		crash := c.Inject(setpointtest.Fault{By: "replicaset-controller", Verb: "create", Kind: "pods", Effect: c.LeaderCrash()})
		c.Apply("testdata/web.yaml")
		c.Eventually("deployment/web", setpointtest.Available)
		if crash.Happened() != 1 {
			t.Errorf("the leader crashed %d times", crash.Happened())
		}
		c.Advance(time.Minute)
		pods, err := c.Kubernetes().CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		if err != nil || len(pods.Items) != 2 {
			t.Errorf("%d pods, %v", len(pods.Items), err)
		}
	})
}
