package pods

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/test/consistency/cluster"
)

const (
	// Namespace is where the pods are.
	Namespace = "bystanders"
	// tolerationSeconds is how long a pod stays on a node that is taken for lost.
	tolerationSeconds = 2

	requestTimeout = 5 * time.Second
	pollInterval   = 200 * time.Millisecond
)

// Pods are one on each node.
type Pods struct {
	clients []kubernetes.Interface // one for each server
	born    map[string]life        // by the pod's name
}

// life is one life of a pod: another pod of its name, or another container, is another one.
type life struct {
	uid       types.UID
	container string
}

var (
	errNotReady = errors.New("is not running and ready")
	errNodes    = errors.New("the nodes have not registered")
)

// Start starts the pods and waits until all are ready.
func Start(ctx context.Context, c cluster.Cluster, timeout time.Duration) (*Pods, error) {
	p := &Pods{}
	for i := range c.Size() {
		config := &rest.Config{Host: c.URL(i), QPS: -1, Timeout: requestTimeout,
			Transport: &http.Transport{DialContext: c.Dial, TLSClientConfig: c.TLS()}}
		client, err := kubernetes.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		p.clients = append(p.clients, client)
	}
	return p, p.start(ctx, timeout)
}

func (p *Pods) start(ctx context.Context, timeout time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return errors.Join(p.until(ctx, p.create), p.until(ctx, func(ctx context.Context, client kubernetes.Interface) (err error) {
		p.born, err = lives(ctx, client)
		return err
	}))
}

// until asks one server after the other until one has done it.
func (p *Pods) until(ctx context.Context, do func(context.Context, kubernetes.Interface) error) error {
	for i := 0; ; i++ {
		err := do(ctx, p.clients[i%len(p.clients)])
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(pollInterval):
		}
	}
}

func (*Pods) create(ctx context.Context, client kubernetes.Interface) error {
	nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	if len(nodes.Items) < cluster.Nodes {
		return fmt.Errorf("%w: %d of %d", errNodes, len(nodes.Items), cluster.Nodes)
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: Namespace}}
	_, err = client.CoreV1().Namespaces().Create(ctx, namespace, metav1.CreateOptions{})
	for _, node := range nodes.Items {
		if err == nil || apierrors.IsAlreadyExists(err) {
			_, err = client.CoreV1().Pods(Namespace).Create(ctx, pod(node.Name), metav1.CreateOptions{})
		}
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func pod(node string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "on-" + node},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{corev1.LabelHostname: node},
			Containers:   []corev1.Container{{Name: "demo", Image: "setpoint.local/demo:v1"}},
		},
	}
	for _, key := range []string{corev1.TaintNodeUnreachable, corev1.TaintNodeNotReady} {
		pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{
			Key: key, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(int64(tolerationSeconds)),
		})
	}
	return pod
}

// lives are those of all pods, which must be ready.
func lives(ctx context.Context, client kubernetes.Interface) (map[string]life, error) {
	list, err := client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	found := map[string]life{}
	for i := range list.Items {
		pod := &list.Items[i]
		if !ready(pod) {
			return nil, fmt.Errorf("%s %w: %s", pod.Name, errNotReady, pod.Status.Phase)
		}
		found[pod.Name] = lifeOf(pod)
	}
	return found, nil
}

func ready(pod *corev1.Pod) bool {
	return len(pod.Status.ContainerStatuses) == 1 && slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func lifeOf(pod *corev1.Pod) life {
	l := life{uid: pod.UID}
	for _, status := range pod.Status.ContainerStatuses {
		l.container = status.ContainerID
	}
	return l
}

// Harmed says, a line for each, which pods do not live as they did when they were started. An error is that of the last server asked.
func (p *Pods) Harmed(ctx context.Context, timeout time.Duration) (harmed []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	var now *corev1.PodList
	err = p.until(ctx, func(ctx context.Context, client kubernetes.Interface) (err error) {
		now, err = client.CoreV1().Pods(Namespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return nil, err
	}
	return p.compare(now.Items), nil
}

func (p *Pods) compare(now []corev1.Pod) (harmed []string) {
	for name, born := range p.born {
		i := slices.IndexFunc(now, func(pod corev1.Pod) bool { return pod.Name == name })
		switch {
		case i < 0:
			harmed = append(harmed, name+" is gone")
		case now[i].DeletionTimestamp != nil:
			harmed = append(harmed, name+" is being deleted")
		case lifeOf(&now[i]) != born:
			harmed = append(harmed, fmt.Sprintf("%s lives anew: %v, was %v", name, lifeOf(&now[i]), born))
		}
	}
	slices.Sort(harmed)
	return harmed
}
