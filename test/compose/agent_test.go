//go:build compose

package compose

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	replacedElsewhereLimit = 30 * time.Second
	pauseTime              = 3 * time.Second
	watchAfterPause        = 20 * time.Second
	restartLimit           = time.Minute
)

func (c *cluster) node(ctx context.Context, name string) (*corev1.Node, error) {
	return answer(ctx, c, func(client kubernetes.Interface) (*corev1.Node, error) {
		return client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	})
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func tainted(node *corev1.Node, effect corev1.TaintEffect) bool {
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeUnreachable && taint.Effect == effect {
			return true
		}
	}
	return false
}

// TestPodsHaveUsersOfTheirOwn, although Docker covers parts of the agents' /proc.
func TestPodsHaveUsersOfTheirOwn(t *testing.T) {
	c := connect(t)
	for _, name := range []string{"agent-1", "agent-2", "agent-3"} {
		node, err := c.node(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		handlers := node.Status.RuntimeHandlers
		if len(handlers) != 1 || handlers[0].Features == nil || !*handlers[0].Features.UserNamespaces {
			t.Errorf("%s: %v, %v", name, handlers, node.Status.Conditions)
		}
	}
}

// TestAgentKilled: the node of a killed agent becomes NotReady and its pods are
// replaced elsewhere.
func TestAgentKilled(t *testing.T) {
	c := connect(t)
	c.deploy(t, "agent-kill", 3)
	pods, err := c.pods(t.Context(), "agent-kill")
	if err != nil {
		t.Fatal(err)
	}
	victim := pods[0].Spec.NodeName
	c.expose(t, "agent-kill", victim)
	docker(t, "kill", victim)
	start := time.Now()
	phases := map[string]time.Duration{}
	eventually(t, time.Minute, func(ctx context.Context) string {
		node, err := c.node(ctx, victim)
		if err != nil {
			return err.Error()
		}
		pods, err := c.pods(ctx, "agent-kill")
		if err != nil {
			return err.Error()
		}
		note(phases, "NotReady", start, !nodeReady(node))
		note(phases, "NoSchedule", start, tainted(node, corev1.TaintEffectNoSchedule))
		note(phases, "NoExecute", start, tainted(node, corev1.TaintEffectNoExecute))
		serves, err := c.serves(ctx, "agent-kill", victim)
		if err != nil {
			return err.Error()
		}
		note(phases, "out of endpoints", start, !serves)
		elsewhere := 0
		for _, pod := range ready(pods) {
			if pod.Spec.NodeName != victim {
				elsewhere++
			}
		}
		if elsewhere < 3 {
			return fmt.Sprintf("%s\n%d of 3 pods are ready elsewhere: %s", c.unwell(ctx), elsewhere, describe(pods))
		}
		return ""
	})
	replaced := time.Since(start)
	t.Logf("killed %s: %v; replaced elsewhere after %v", victim, phases, replaced.Round(time.Millisecond))
	if _, out := phases["out of endpoints"]; !out {
		t.Error("the killed node's pods never left the endpoints")
	}
	if replaced > replacedElsewhereLimit {
		t.Errorf("replaced after %v, more than %v", replaced, replacedElsewhereLimit)
	}
	docker(t, "start", victim)
	c.waitNodes(t)
}

// expose makes a Service for a Deployment and waits until a node's pods serve it.
func (c *cluster) expose(t *testing.T, name, node string) {
	t.Helper()
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": name}, Ports: []corev1.ServicePort{{Port: 8080}}},
	}
	client := c.clients[0]
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.CoreV1().Services("default").Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete service %s: %v", name, err)
		}
	})
	eventually(t, time.Minute, func(ctx context.Context) string {
		if serves, err := c.serves(ctx, name, node); err != nil || !serves {
			return fmt.Sprint("no ready endpoint on ", node, ": ", err)
		}
		return ""
	})
}

// serves reports whether any ready endpoint of a Service is on the node.
func (c *cluster) serves(ctx context.Context, service, node string) (bool, error) {
	slices, err := answer(ctx, c, func(client kubernetes.Interface) (*discoveryv1.EndpointSliceList, error) {
		return client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + service})
	})
	if err != nil {
		return false, err
	}
	for _, slice := range slices.Items {
		for _, endpoint := range slice.Endpoints {
			if endpoint.NodeName != nil && *endpoint.NodeName == node && *endpoint.Conditions.Ready {
				return true, nil
			}
		}
	}
	return false, nil
}

func note(phases map[string]time.Duration, name string, start time.Time, happened bool) {
	if _, known := phases[name]; happened && !known {
		phases[name] = time.Since(start).Round(time.Millisecond)
	}
}

// waitNodes waits until every node is ready and free of taints.
func (c *cluster) waitNodes(t *testing.T) {
	t.Helper()
	eventually(t, restartLimit, func(ctx context.Context) string {
		for i := range agents {
			name := fmt.Sprintf("agent-%d", i+1)
			node, err := c.node(ctx, name)
			if err != nil {
				return err.Error()
			}
			if !nodeReady(node) || len(node.Spec.Taints) > 0 {
				return fmt.Sprintf("%s is not ready: %v", name, node.Spec.Taints)
			}
		}
		return ""
	})
}

// TestAgentPaused: a short pause evicts nothing.
func TestAgentPaused(t *testing.T) {
	c := connect(t)
	c.waitNodes(t)
	c.deploy(t, "agent-pause", 3)
	before := c.identities(t, "agent-pause")
	victim := "agent-1"
	docker(t, "pause", victim)
	time.Sleep(pauseTime)
	docker(t, "unpause", victim)
	end := time.Now().Add(watchAfterPause)
	for time.Now().Before(end) {
		node, err := c.node(t.Context(), victim)
		if err == nil && tainted(node, corev1.TaintEffectNoExecute) {
			t.Fatal("the paused node was tainted NoExecute")
		}
		time.Sleep(time.Second)
	}
	if after := c.identities(t, "agent-pause"); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("pods before %v, after %v", before, after)
	}
}

// identities maps each pod's name to its uid and restarts.
func (c *cluster) identities(t *testing.T, app string) map[string]string {
	t.Helper()
	pods, err := c.pods(t.Context(), app)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, pod := range pods {
		all[pod.Name] = fmt.Sprintf("%s restarts=%d", pod.UID, restarts(pod))
	}
	return all
}

func restarts(pod corev1.Pod) (n int32) {
	for _, status := range pod.Status.ContainerStatuses {
		n += status.RestartCount
	}
	return n
}

// TestAgentRestarted: the pods of a restarted machine are the same pods, started
// once more.
func TestAgentRestarted(t *testing.T) {
	c := connect(t)
	c.waitNodes(t)
	c.deploy(t, "agent-restart", 6)
	pods, err := c.pods(t.Context(), "agent-restart")
	if err != nil {
		t.Fatal(err)
	}
	victim := pods[0].Spec.NodeName
	docker(t, "restart", "-t", "3", victim)
	took := eventually(t, restartLimit, func(ctx context.Context) string {
		now, err := c.pods(ctx, "agent-restart")
		if err != nil {
			return err.Error()
		}
		return compareRestarted(pods, now, victim)
	})
	t.Logf("%s restarted: same pods running again after %v", victim, took.Round(time.Millisecond))
}

func compareRestarted(before, now []corev1.Pod, victim string) string {
	if len(ready(now)) != len(before) {
		return fmt.Sprintf("%d of %d pods are ready", len(ready(now)), len(before))
	}
	byName := map[string]corev1.Pod{}
	for _, pod := range now {
		byName[pod.Name] = pod
	}
	for _, pod := range before {
		want := restarts(pod)
		if pod.Spec.NodeName == victim {
			want++
		}
		same, ok := byName[pod.Name]
		if !ok || same.UID != pod.UID || restarts(same) != want {
			return fmt.Sprintf("pod %s on %s: uid %s to %s, restarts %d, want %d", pod.Name, pod.Spec.NodeName, pod.UID, same.UID, restarts(same), want)
		}
	}
	return ""
}

// TestServersRestarted: all servers at once; objects and versions stay, and no
// pod notices.
func TestServersRestarted(t *testing.T) {
	c := connect(t)
	c.deploy(t, "servers-restart", 3)
	time.Sleep(settleAfter) // statuses still being written would change versions
	before, pods := c.versions(t), c.identities(t, "servers-restart")
	docker(t, "restart", "-t", "5", "server-1", "server-2", "server-3")
	c.waitServers(t)
	after := c.versions(t)
	for key, version := range before {
		if after[key] != version {
			t.Errorf("%s: resourceVersion %s to %q", key, version, after[key])
		}
	}
	if now := c.identities(t, "servers-restart"); fmt.Sprint(now) != fmt.Sprint(pods) {
		t.Errorf("pods before %v, after %v", pods, now)
	}
	t.Logf("%d objects and %d pods unchanged", len(before), len(pods))
}

// versions are the resourceVersions of what nothing should touch.
func (c *cluster) versions(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	client := c.clients[0]
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range pods.Items {
		if _, ofServer := o.Annotations[corev1.MirrorPodAnnotationKey]; !ofServer { // those tell when their server was started
			all["pod "+o.Name] = o.ResourceVersion
		}
	}
	cms, err := client.CoreV1().ConfigMaps("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range cms.Items {
		all["configmap "+o.Namespace+"/"+o.Name] = o.ResourceVersion
	}
	deployments, err := client.AppsV1().Deployments("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range deployments.Items {
		all["deployment "+o.Name] = o.ResourceVersion
	}
	return all
}
