package machines

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest/nodestate"
)

const (
	toleration = 5 * time.Second
	pauseTime  = 5 * time.Second
	// watchTime is how long nothing may be evicted after a pause: longer than the toleration and the hold-down of 10 s.
	watchTime = 18 * time.Second
	// leaseGrace is after how long a node's missed Lease alone makes it NotReady, as with a kubelet.
	leaseGrace = 40 * time.Second
	// patience is for what has no promised time, on a machine that has other things to do.
	patience = time.Minute
)

func TestMain(m *testing.M) { os.Exit(Main(m)) }

// TestThreeMachines is the README's set-up, a server and an agent on each machine. A pause of the leader's machine moves
// no pod. When that machine is cut off, its node is NotReady long before its Lease is missed (within
// 10 s, unless the machine has much else to do), and its pods are replaced elsewhere within 15 s after
// their toleration, which the loss of the node begins. Another machine is turned off and on, and each step of its node's death is seen.
func TestThreeMachines(t *testing.T) {
	if err := Missing(); err != nil {
		t.Skip("needs root:", err)
	}
	c := New(t, binary(t))
	Until(t, patience, c.nodesNotReady)
	c.deploy(t, "web", 3)
	t.Run("each machine reaches Services", func(t *testing.T) { c.reachService(t) })
	t.Run("policies hold on all machines", func(t *testing.T) { c.policies(t) })
	t.Run("a pause moves nothing", func(t *testing.T) { c.pauseLeader(t) })
	t.Run("a lost machine is replaced", func(t *testing.T) { c.cutLeader(t) })
	t.Run("a node dies in seven steps", func(t *testing.T) { c.nodeDies(t) })
	t.Run("a deleted node registers again", func(t *testing.T) { c.deleteNode(t) })
	t.Run("a stolen node opens no door of another, and none when it is revoked", func(t *testing.T) { c.stolenNode(t) })
}

// binary is bin/setpoint, or made for the test.
func binary(t *testing.T) string {
	if made := os.Getenv("SETPOINT_TEST_BINARY"); made != "" {
		return made
	}
	made := filepath.Join(t.TempDir(), "setpoint")
	build := exec.Command("go", "build", "-o", made, "../../cmd/setpoint")
	build.Env = append(os.Environ(), "CGO_ENABLED=0") // the demo image holds nothing but this file
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return made
}

// reachService asks for the API at its cluster address on each machine: there is no default route.
func (c *Cluster) reachService(t *testing.T) {
	for _, m := range c.Machines {
		Until(t, patience, func(context.Context) string {
			out, err := m.Command(c.binary, "kubectl", "--kubeconfig=/etc/setpoint/admin.kubeconfig", "--server=https://10.96.0.1",
				"--request-timeout=2s", "get", "--raw=/livez")
			if err != nil {
				return m.Node + ": " + out
			}
			return ""
		})
	}
}

func (c *Cluster) pauseLeader(t *testing.T) {
	before, err := c.pods("web")
	if err != nil {
		t.Fatal(err)
	}
	m := c.leader(t)
	if err := m.Pause(); err != nil {
		t.Fatal(err)
	}
	resume := time.After(pauseTime)
	for end := time.After(pauseTime + watchTime); ; {
		select {
		case <-resume:
			if err := m.Resume(); err != nil {
				t.Fatal(err)
			}
			continue
		case <-end:
			Until(t, patience, c.nodesNotReady)
			return
		case <-time.After(pollInterval):
		}
		now, err := c.pods("web")
		if err == nil && !samePods(before, now) {
			t.Fatalf("a pause of %v moved pods:\n%s\n%s", pauseTime, describe(before), describe(now))
		}
	}
}

func (c *Cluster) cutLeader(t *testing.T) {
	m := c.leader(t)
	if err := m.Cut(); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	Until(t, patience, func(ctx context.Context) string {
		if ready, err := c.nodeReady(ctx, m.Node); err != nil || ready {
			return fmt.Sprintf("%s Ready: %v %v", m.Node, ready, err)
		}
		return ""
	})
	notReady := time.Since(start)
	Until(t, patience, func(ctx context.Context) string {
		pods, err := c.pods("web")
		if err != nil {
			return err.Error()
		}
		if n := readyElsewhere(pods, m.Node); n < 3 {
			return fmt.Sprintf("%s\n%d of 3 pods are ready elsewhere:\n%s", c.unwell(ctx), n, describe(pods))
		}
		return ""
	})
	replaced := time.Since(start)
	t.Logf("the machine of the leader was cut off: NotReady after %v, pods replaced after %v", notReady, replaced)
	if notReady > leaseGrace {
		t.Errorf("NotReady after %v: gossip and sessions told no sooner than a missed Lease would, after %v", notReady, leaseGrace)
	}
	if limit := notReady + toleration + 15*time.Second; replaced > limit {
		t.Errorf("replaced after %v, more than %v: 15 s after the toleration of %v", replaced, limit, toleration)
	}
	if err := m.Heal(); err != nil {
		t.Fatal(err)
	}
	Until(t, patience, c.nodesNotReady)
}

// leader is the machine of the leader that runs the control loops.
func (c *Cluster) leader(t *testing.T) (m *Machine) {
	Until(t, patience, func(ctx context.Context) string {
		holder, err := Ask(c, func(client kubernetes.Interface) (string, error) {
			lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-controller-manager", metav1.GetOptions{})
			if err != nil {
				return "", err
			}
			server, _, _ := strings.Cut(*lease.Spec.HolderIdentity, "_") // the term follows
			return server, nil
		})
		if m = c.Machine(holder); m == nil {
			return fmt.Sprintf("the leader is %q, no machine: %v", holder, err)
		}
		return ""
	})
	return m
}

// nodesNotReady says which nodes are not, "" if all are ready.
func (c *Cluster) nodesNotReady(ctx context.Context) string {
	for _, m := range c.Machines {
		if ready, err := c.nodeReady(ctx, m.Node); err != nil || !ready {
			return fmt.Sprintf("%s Ready: %v %v", m.Node, ready, err)
		}
	}
	return ""
}

// unwell says what is wrong with the nodes that are machines.
func (c *Cluster) unwell(ctx context.Context) string {
	nodes, err := Ask(c, func(client kubernetes.Interface) (*corev1.NodeList, error) {
		return client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return err.Error()
	}
	return nodestate.Unwell(slices.DeleteFunc(nodes.Items, func(n corev1.Node) bool { return c.Machine(n.Name) == nil }))
}

func (c *Cluster) nodeReady(ctx context.Context, name string) (bool, error) {
	node, err := Ask(c, func(client kubernetes.Interface) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
	if err != nil {
		return false, err
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue, nil
		}
	}
	return false, nil
}

// deploy runs a Deployment of the demo image, one pod on each machine, and waits until it is ready.
func (c *Cluster) deploy(t *testing.T, name string, replicas int32) {
	t.Helper()
	Until(t, patience, func(ctx context.Context) string {
		_, err := Ask(c, func(client kubernetes.Interface) (*appsv1.Deployment, error) {
			return client.AppsV1().Deployments("default").Create(ctx, demo(name, replicas), metav1.CreateOptions{})
		})
		if err != nil {
			return err.Error()
		}
		return ""
	})
	Until(t, patience, func(ctx context.Context) string {
		pods, err := c.pods(name)
		if n := readyElsewhere(pods, ""); err != nil || n < int(replicas) {
			return fmt.Sprintf("%s\n%d of %d pods are ready: %v\n%s", c.unwell(ctx), n, replicas, err, describe(pods))
		}
		return ""
	})
}

func demo(name string, replicas int32) *appsv1.Deployment {
	selector := &metav1.LabelSelector{MatchLabels: labels.Set{"app": name}}
	pod := corev1.PodSpec{
		Containers: []corev1.Container{{Name: "demo", Image: "setpoint.local/demo:v1"}},
		TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
			MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector,
		}},
	}
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		pod.Tolerations = append(pod.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(toleration.Seconds())),
		})
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: selector,
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: selector.MatchLabels}, Spec: pod},
		},
	}
}

func (c *Cluster) pods(app string) ([]corev1.Pod, error) {
	list, err := Ask(c, func(client kubernetes.Interface) (*corev1.PodList, error) {
		return client.CoreV1().Pods("default").List(context.Background(), metav1.ListOptions{LabelSelector: labels.Set{"app": app}.String()})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// readyElsewhere counts ready pods that are not on the node.
func readyElsewhere(pods []corev1.Pod, node string) (n int) {
	for i := range pods {
		if pods[i].Spec.NodeName != node && podReady(&pods[i]) {
			n++
		}
	}
	return n
}

func podReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil
		}
	}
	return false
}

// samePods reports whether the pods are those of before and none of them is on its way out.
func samePods(before, now []corev1.Pod) bool {
	known := map[string]bool{}
	for i := range before {
		known[string(before[i].UID)] = true
	}
	for i := range now {
		if !known[string(now[i].UID)] || now[i].DeletionTimestamp != nil {
			return false
		}
	}
	return len(before) == len(now)
}

func describe(pods []corev1.Pod) (text string) {
	for i := range pods {
		text += fmt.Sprintf("  %s on %s: %s, ready %v, deleted %v\n", pods[i].Name, pods[i].Spec.NodeName,
			pods[i].Status.Phase, podReady(&pods[i]), pods[i].DeletionTimestamp != nil)
	}
	return text
}
