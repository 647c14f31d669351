package operators

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	"sigs.k8s.io/jobset/pkg/controllers"
	"sigs.k8s.io/jobset/pkg/webhooks"

	"github.com/setpoint-io/setpoint/setpointtest"
)

// workers are the pods of testdata/training.yaml.
const workers = 4

// part is the path of a part of the operator's configuration, in its module.
func part(t *testing.T, path string) string {
	t.Helper()
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/jobset").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(dir)), "config", "components", path)
}

// newManager returns one with the operator's controllers, as its main sets them up, with the rights of its role.
func newManager(t *testing.T, c *setpointtest.Cluster, options ctrl.Options) ctrl.Manager {
	t.Helper()
	options.Scheme = runtime.NewScheme()
	must(t, scheme.AddToScheme(options.Scheme))
	must(t, jobset.AddToScheme(options.Scheme))
	options.Metrics = metricsserver.Options{BindAddress: "0"}
	options.Controller = config.Controller{SkipNameValidation: new(true)} // several managers in one process
	manager, err := ctrl.NewManager(c.As("jobset").RESTConfig(), options)
	must(t, err)
	must(t, controllers.SetupJobSetIndexes(t.Context(), manager.GetFieldIndexer()))
	must(t, controllers.SetupPodIndexes(t.Context(), manager.GetFieldIndexer()))
	must(t, controllers.NewJobSetReconciler(manager.GetClient(), manager.GetScheme(), manager.GetEventRecorder("jobset")).SetupWithManager(manager))
	must(t, controllers.NewPodReconciler(manager.GetClient(), manager.GetScheme(), manager.GetEventRecorder("pod")).SetupWithManager(manager))
	return manager
}

// TestFork: the operator runs in one of two forks. There a node dies, its jobs fail, and the operator starts all
// workers anew on the nodes that are left. The other fork sees nothing of it.
func TestFork(t *testing.T) {
	crds, role := part(t, "crd/bases"), part(t, "rbac/role.yaml")
	synctest.Test(t, func(t *testing.T) {
		base := setpointtest.Start(t, setpointtest.Config{CRDs: []string{crds}, Nodes: 3})
		base.Apply(role, "testdata/account.yaml")
		c, other := base.Fork(t), base.Fork(t)
		c.Run(newManager(t, c, ctrl.Options{}))
		c.Apply("testdata/training.yaml")
		c.Eventually("jobset/training", restarted(0))
		c.Advance(time.Minute)
		if nodes := running(t, c); len(nodes) != workers {
			t.Fatalf("%d workers run: %v", len(nodes), nodes)
		}
		c.KillNode("sim-1")
		c.Advance(7 * time.Minute) // 40 seconds until it counts as lost, five minutes until its pods are evicted
		c.Delete("node/sim-1")     // a job fails when its pods have ended, and nobody on the node can confirm that
		c.Eventually("jobset/training", restarted(1))
		c.Advance(time.Minute)
		nodes := running(t, c)
		if len(nodes) != workers {
			t.Errorf("%d workers run after the node's death: %v", len(nodes), nodes)
		}
		for pod, node := range nodes {
			if node == "sim-1" {
				t.Errorf("%s runs on a node that is gone", pod)
			}
		}
		c.NoWritesWhenQuiet()
		untouched(t, other)
	})
}

// restarted is that the operator has started all workers anew so often.
func restarted(n int64) setpointtest.Condition {
	return setpointtest.That("restarted", func(set *unstructured.Unstructured) bool {
		restarts, _, err := unstructured.NestedInt64(set.Object, "status", "restarts")
		return err == nil && restarts == n
	})
}

// running are the nodes of the workers that run.
func running(t *testing.T, c *setpointtest.Cluster) map[string]string {
	t.Helper()
	pods, err := c.Kubernetes().CoreV1().Pods(c.Namespace()).List(t.Context(), metav1.ListOptions{LabelSelector: jobset.JobSetNameKey})
	must(t, err)
	nodes := map[string]string{}
	for _, pod := range pods.Items {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil {
			nodes[pod.Name] = pod.Spec.NodeName
		}
	}
	return nodes
}

// untouched: nothing of what happened in the other fork is in this one.
func untouched(t *testing.T, c *setpointtest.Cluster) {
	t.Helper()
	if c.Get("jobset/training") != nil {
		t.Error("the other fork has the JobSet")
	}
	pods, err := c.Kubernetes().CoreV1().Pods(c.Namespace()).List(t.Context(), metav1.ListOptions{})
	must(t, err)
	if len(pods.Items) != 0 {
		t.Errorf("the other fork has %d pods", len(pods.Items))
	}
	c.Eventually("node/sim-1", setpointtest.Ready)
}

// TestWebhooks: with its webhooks the operator completes what a user writes, and refuses what it cannot do.
func TestWebhooks(t *testing.T) {
	c := setpointtest.Start(t, setpointtest.Config{
		CRDs: []string{part(t, "crd/bases")}, Webhooks: []string{part(t, "webhook/manifests.yaml")}, Nodes: 2,
	})
	c.Apply(part(t, "rbac/role.yaml"), "testdata/account.yaml")
	at := c.WebhookServer()
	manager := newManager(t, c, ctrl.Options{
		WebhookServer: webhook.NewServer(webhook.Options{Host: at.Host, Port: at.Port, CertDir: at.CertDir}),
	})
	must(t, webhooks.Setup(manager))
	c.Run(manager)
	c.Apply("testdata/short.yaml")
	c.Eventually("jobset/short", setpointtest.Field("defaulted", "All", "spec", "successPolicy", "operator"))
	c.Eventually("jobset/short", setpointtest.True("Completed"))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
