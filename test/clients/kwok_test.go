package clients

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

var (
	nodes       = corev1.SchemeGroupVersion.WithResource("nodes")
	pods        = corev1.SchemeGroupVersion.WithResource("pods")
	deployments = schemaOf("apps", "v1", "deployments")
)

// startKWOK lets KWOK play the kubelets of some nodes, with its own definitions and
// stages.
func startKWOK(t *testing.T, c *cluster, count int) *process {
	t.Helper()
	source := os.Getenv("KWOK_SOURCE")
	c.kubectl(t, "", "apply", "--server-side", "-f", filepath.Join(source, "kustomize/crd/bases"))
	c.kubectl(t, "", "wait", "--for=condition=established", "--timeout=30s", "crd", "--all")
	c.kubectl(t, "", "apply", "-k", filepath.Join(source, "kustomize/stage/fast"))
	for i := range count {
		_, err := c.client.CoreV1().Nodes().Create(t.Context(), fakeNode(fmt.Sprintf("kwok-%d", i+1)), metav1.CreateOptions{})
		mustf(t, err, "creating a node")
	}
	p := mustStart(t, "Watch all nodes", nil, "kwok", "--kubeconfig", c.kubeconfig, "--manage-all-nodes=true", "--enable-crds=Stage",
		"--node-lease-duration-seconds=40", "--server-address", freeAddress(t))
	for i := range count {
		c.await(t, nodes, "", fmt.Sprintf("kwok-%d", i+1), "Ready", hasCondition("Ready"))
	}
	return p
}

func fakeNode(name string) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU: resource.MustParse("32"), corev1.ResourceMemory: resource.MustParse("256Gi"), corev1.ResourcePods: resource.MustParse("110"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"type": "kwok"}, Annotations: map[string]string{"kwok.x-k8s.io/node": "fake"}},
		Status:     corev1.NodeStatus{Allocatable: capacity, Capacity: capacity},
	}
}

// TestKWOK lets pods run on KWOK's nodes, through a change of the leading server, and
// takes KWOK away: its nodes are given up when their leases are.
func TestKWOK(t *testing.T) {
	c := startServers(t)
	kwok := startKWOK(t, c, 3)
	c.kubectl(t, "", "create", "deployment", "web", "--image=example.com/web:v1", "--replicas=20")
	c.await(t, deployments, "default", "web", "ready", ready(20))
	c.killLeader(t)
	c.kubectl(t, "", "scale", "deployment", "web", "--replicas=40")
	c.await(t, deployments, "default", "web", "ready", ready(40))
	c.kubectl(t, "", "delete", "pods", "--all", "--timeout=60s")
	c.await(t, deployments, "default", "web", "ready", ready(40))
	c.kubectl(t, "", "drain", "kwok-1", "--timeout=60s")
	c.await(t, deployments, "default", "web", "ready", ready(40))

	mustf(t, kwok.stop(), "stopping kwok")
	c.await(t, nodes, "", "kwok-2", "given up", func(o *unstructured.Unstructured) bool { return o != nil && !hasCondition("Ready")(o) })
}

func ready(replicas int64) func(*unstructured.Unstructured) bool {
	return func(o *unstructured.Unstructured) bool {
		if o == nil {
			return false
		}
		observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
		n, _, _ := unstructured.NestedInt64(o.Object, "status", "readyReplicas")
		return observed >= o.GetGeneration() && n == replicas
	}
}
