package escape

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/yaml"
)

const (
	namespace = "default"
	// podTimeMax bounds what a pod does. A healthy machine needs a second or two; a container that the agent refuses half of the
	// times, as in subpath-swap, is tried again every ten seconds at last.
	podTimeMax = 2 * time.Minute
	// kubectlTimeMax bounds one command.
	kubectlTimeMax = 30 * time.Second
)

type pageKey struct{}

// page is one script that runs: its pod and the host's files it watches over.
type page struct {
	cluster *cluster
	pod     string
	timeMax time.Duration // bounds what the pod does
	guarded []*guardedFile
}

func pageOf(ts *testscript.TestScript) *page { return ts.Value(pageKey{}).(*page) }

func attack(ts *testscript.TestScript, neg bool, args []string) {
	p := launch(ts, neg, args, func(pod *corev1.Pod) bool {
		return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	})
	for _, container := range slices.Concat(p.Spec.InitContainers, p.Spec.Containers) {
		options := &corev1.PodLogOptions{Container: container.Name}
		log, err := pageOf(ts).cluster.client.CoreV1().Pods(namespace).GetLogs(p.Name, options).DoRaw(context.Background())
		if err != nil { // it was refused, or never began
			fmt.Fprintln(ts.Stderr(), container.Name, err)
			continue
		}
		_, _ = ts.Stdout().Write(log)
	}
	describe(ts.Stderr(), p)
}

// describe says why a pod, or a container of it, did not run.
func describe(to io.Writer, pod *corev1.Pod) {
	fmt.Fprintln(to, pod.Status.Phase, pod.Status.Reason, pod.Status.Message)
	for _, c := range pod.Status.Conditions {
		if c.Status != corev1.ConditionTrue {
			fmt.Fprintln(to, c.Type, c.Reason, c.Message)
		}
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if ended := status.State.Terminated; ended != nil {
			fmt.Fprintln(to, status.Name, ended.ExitCode, ended.Reason, ended.Message)
		}
		if waiting := status.State.Waiting; waiting != nil {
			fmt.Fprintln(to, status.Name, waiting.Reason, waiting.Message)
		}
	}
}

// describeNodes says which of the cluster's nodes is not ready, and why.
func describeNodes(to io.Writer, c *cluster) {
	nodes, err := c.client.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
	if err != nil {
		fmt.Fprintln(to, err)
		return
	}
	for i := range nodes.Items {
		for _, condition := range nodes.Items[i].Status.Conditions {
			if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
				fmt.Fprintln(to, nodes.Items[i].Name, condition.Reason, condition.Message)
			}
		}
	}
}

// waiting is what the attacker prints when its step "wait" begins.
const waiting = "waiting"

func start(ts *testscript.TestScript, neg bool, args []string) {
	pod := launch(ts, neg, args, func(pod *corev1.Pod) bool {
		return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
			return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
		})
	})
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		ts.Check(followLog(ts.Stdout(), pageOf(ts).cluster, pod.Name, container.Name))
	}
}

// followLog copies what the container does before it waits.
func followLog(to io.Writer, c *cluster, pod, container string) error {
	ctx, cancel := context.WithTimeout(context.Background(), podTimeMax)
	defer cancel()
	log, err := c.client.CoreV1().Pods(namespace).GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true}).Stream(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	lines := bufio.NewScanner(log)
	for lines.Scan() && lines.Text() != waiting {
		fmt.Fprintln(to, lines.Text())
	}
	return lines.Err()
}

// launch creates the pod and waits until it is as wanted. It is named as its page and never restarts.
func launch(ts *testscript.TestScript, neg bool, args []string, wanted func(*corev1.Pod) bool) *corev1.Pod {
	p := pageOf(ts)
	if neg || len(args) < 1 || len(args) > 2 || p.pod != "" {
		ts.Fatalf("attack FILE [LIMIT] or start FILE [LIMIT]: one pod at a time, and not with !")
	}
	p.timeMax = podTimeMax
	if len(args) == 2 {
		var err error
		p.timeMax, err = time.ParseDuration(args[1])
		ts.Check(err)
	}
	pod := &corev1.Pod{}
	ts.Check(yaml.UnmarshalStrict([]byte(ts.ReadFile(args[0])), pod))
	pod.Name = ts.Name()
	for _, list := range [][]corev1.Container{pod.Spec.InitContainers, pod.Spec.Containers} {
		for i := range list {
			if list[i].Image == "" {
				list[i].Image = attackerImage
			}
		}
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	_, err := p.cluster.client.CoreV1().Pods(namespace).Create(context.Background(), pod, metav1.CreateOptions{})
	ts.Check(err)
	p.pod = pod.Name
	ts.Defer(func() { p.delete() })
	last, err := p.await(nil, func(event watch.Event) (bool, error) { return wanted(event.Object.(*corev1.Pod)), nil })
	if err != nil {
		describe(ts.Stderr(), last)
		describeNodes(ts.Stderr(), p.cluster)
		ts.Fatalf("pod %s: %v", pod.Name, err)
	}
	return last
}

// await returns the pod as it was last seen. already, which may be nil, says whether there is nothing to wait for.
func (p *page) await(already watchtools.PreconditionFunc, wanted watchtools.ConditionFunc) (*corev1.Pod, error) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeMax)
	defer cancel()
	one := fields.OneTermEqualSelector("metadata.name", p.pod).String()
	pods := p.cluster.client.CoreV1().Pods(namespace)
	list := &lister{
		list:  func(o metav1.ListOptions) (runtime.Object, error) { o.FieldSelector = one; return pods.List(ctx, o) },
		watch: func(o metav1.ListOptions) (watch.Interface, error) { o.FieldSelector = one; return pods.Watch(ctx, o) },
	}
	last := &corev1.Pod{}
	_, err := watchtools.UntilWithSync(ctx, list, &corev1.Pod{}, already, func(event watch.Event) (bool, error) {
		last = event.Object.(*corev1.Pod)
		return wanted(event)
	})
	return last, err
}

type lister struct {
	list  func(metav1.ListOptions) (runtime.Object, error)
	watch func(metav1.ListOptions) (watch.Interface, error)
}

func (l *lister) List(o metav1.ListOptions) (runtime.Object, error)   { return l.list(o) }
func (l *lister) Watch(o metav1.ListOptions) (watch.Interface, error) { return l.watch(o) }

func deletePod(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: delete")
	}
	ts.Check(pageOf(ts).delete())
}

func (p *page) delete() error {
	if p.pod == "" {
		return nil
	}
	second := int64(1)
	err := p.cluster.client.CoreV1().Pods(namespace).Delete(context.Background(), p.pod, metav1.DeleteOptions{GracePeriodSeconds: &second})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	gone := func(pods cache.Store) (bool, error) { return len(pods.ListKeys()) == 0, nil }
	_, err = p.await(gone, func(event watch.Event) (bool, error) { return event.Type == watch.Deleted, nil })
	p.pod = ""
	return err
}

func kubectl(ts *testscript.TestScript, neg bool, args []string) {
	ctx, cancel := context.WithTimeout(context.Background(), kubectlTimeMax)
	defer cancel()
	command := exec.CommandContext(ctx, pageOf(ts).cluster.binary, append([]string{"kubectl"}, args...)...)
	command.Env = append(os.Environ(), "KUBECONFIG="+ts.Getenv("KUBECONFIG"), "HOME="+ts.Getenv("HOME"))
	command.Dir, command.Stdout, command.Stderr = ts.Getenv("WORK"), ts.Stdout(), ts.Stderr()
	err := command.Run()
	if ctx.Err() != nil || (err != nil) != neg {
		ts.Fatalf("kubectl: unexpected result: %v", err)
	}
}
