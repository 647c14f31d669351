//go:build compose

package compose

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/setpoint-io/setpoint/agent/base/machine/machinetest/nodestate"
)

const (
	servers      = 3
	agents       = 3
	pollInterval = 50 * time.Millisecond
	requestLimit = 2 * time.Second
)

// cluster is the compose cluster: a client for each server.
type cluster struct {
	clients [servers]kubernetes.Interface
}

func connect(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{}
	for i := range c.clients {
		config, err := clientcmd.BuildConfigFromFlags("", filepath.Join("..", "..", ".compose", serverName(i)+".kubeconfig"))
		if err != nil {
			t.Fatalf("run make compose-up first: %v", err)
		}
		config.QPS, config.Timeout = -1, requestLimit
		if c.clients[i], err = kubernetes.NewForConfig(config); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func serverName(i int) string { return "server-" + strconv.Itoa(i+1) }

// docker runs one docker command.
func docker(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// eventually polls until check says "", and returns how long it took.
func eventually(t *testing.T, limit time.Duration, check func(ctx context.Context) string) time.Duration {
	t.Helper()
	start := time.Now()
	last := ""
	for time.Since(start) < limit {
		if last = check(t.Context()); last == "" {
			return time.Since(start)
		}
		time.Sleep(pollInterval)
	}
	t.Fatalf("after %v: %s", limit, last)
	return 0
}

// answer returns the answer of the first server that gives one.
func answer[T any](ctx context.Context, c *cluster, ask func(kubernetes.Interface) (T, error)) (T, error) {
	var got T
	var err error
	for _, client := range c.clients {
		if got, err = ask(client); err == nil || apierrors.IsNotFound(err) {
			return got, err
		}
	}
	return got, err
}

func (c *cluster) pods(ctx context.Context, app string) ([]corev1.Pod, error) {
	list, err := answer(ctx, c, func(client kubernetes.Interface) (*corev1.PodList, error) {
		return client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{LabelSelector: labels.Set{"app": app}.String()})
	})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

// leader is the server that holds the control loops' Lease.
func (c *cluster) leader(ctx context.Context) (string, error) {
	lease, err := answer(ctx, c, func(client kubernetes.Interface) (string, error) {
		lease, err := client.CoordinationV1().Leases("kube-system").Get(ctx, "kube-controller-manager", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return *lease.Spec.HolderIdentity, nil
	})
	return lease, err
}

// deploy creates a Deployment of the demo image with quick eviction and waits
// until it is ready.
func (c *cluster) deploy(t *testing.T, name string, replicas int32) {
	t.Helper()
	_, err := answer(t.Context(), c, func(client kubernetes.Interface) (*appsv1.Deployment, error) {
		return client.AppsV1().Deployments("default").Create(t.Context(), demo(name, replicas), metav1.CreateOptions{})
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), requestLimit)
		defer cancel()
		_, err := answer(ctx, c, func(client kubernetes.Interface) (struct{}, error) {
			return struct{}{}, client.AppsV1().Deployments("default").Delete(ctx, name, metav1.DeleteOptions{})
		})
		if err != nil {
			t.Errorf("delete %s: %v", name, err)
		}
	})
	c.waitReady(t, name, int(replicas), time.Minute)
}

func demo(name string, replicas int32) *appsv1.Deployment {
	selector := map[string]string{"app": name}
	var tolerations []corev1.Toleration
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		tolerations = append(tolerations, corev1.Toleration{Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(5))})
	}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: selector},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: selector},
				Spec: corev1.PodSpec{
					Tolerations:                   tolerations,
					TerminationGracePeriodSeconds: new(int64(2)),
					Containers:                    []corev1.Container{{Name: "demo", Image: "setpoint.local/demo:v1"}},
				},
			},
		},
	}
}

func (c *cluster) waitReady(t *testing.T, app string, want int, limit time.Duration) time.Duration {
	t.Helper()
	return eventually(t, limit, func(ctx context.Context) string {
		pods, err := c.pods(ctx, app)
		if err != nil {
			return err.Error()
		}
		if n := len(ready(pods)); n < want {
			return fmt.Sprintf("%s\n%d of %d pods are ready: %s", c.unwell(ctx), n, want, describe(pods))
		}
		return ""
	})
}

// unwell says what is wrong with the nodes.
func (c *cluster) unwell(ctx context.Context) string {
	nodes, err := answer(ctx, c, func(client kubernetes.Interface) (*corev1.NodeList, error) {
		return client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	})
	if err != nil {
		return err.Error()
	}
	return nodestate.Unwell(nodes.Items)
}

func ready(pods []corev1.Pod) []corev1.Pod {
	var all []corev1.Pod
	for _, pod := range pods {
		for _, condition := range pod.Status.Conditions {
			if condition.Type == corev1.PodReady && condition.Status == corev1.ConditionTrue && pod.DeletionTimestamp == nil {
				all = append(all, pod)
			}
		}
	}
	return all
}

func describe(pods []corev1.Pod) string {
	var all []string
	for _, pod := range pods {
		all = append(all, fmt.Sprintf("%s on %s %s", pod.Name, pod.Spec.NodeName, pod.Status.Phase))
	}
	sort.Strings(all)
	return strings.Join(all, ", ")
}

// kills is how often a test kills its victim.
func kills(t *testing.T) int {
	text := os.Getenv("COMPOSE_KILLS")
	if text == "" {
		return 1
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("COMPOSE_KILLS: %v", err)
	}
	return n
}
