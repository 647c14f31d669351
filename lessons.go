package setpoint

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"

	"github.com/setpoint-io/setpoint/agent/simulated"
	"github.com/setpoint-io/setpoint/apiserver/podlistener"
	"github.com/setpoint-io/setpoint/internal/process"
	"github.com/setpoint-io/setpoint/internal/trust"
)

// Why a lesson is refused.
var (
	errRealNode = errors.New("this node is no simulated one, and its machine is not switched off for a lesson: " +
		"'setpoint dev --simulated-nodes 3' has nodes for that")
	errRealPod = errors.New("the pod is on no simulated node, and its containers are left alone: " +
		"delete it, or see 'setpoint dev --simulated-nodes 3'")
	errNotRunning = errors.New("the pod does not run")
	errEnded      = errors.New("the pod has ended and is not started again: what made it may make another")
	errLastServer = errors.New("it is the last server that runs, and nobody could order it to be started again: end 'setpoint dev' itself with Ctrl-C")
	errOnlyPort   = errors.New("this cluster is reached by the port of this server alone, and nobody could order it to be started again")
	errNodeOff    = errors.New("its node is switched off, and nothing happens to its pods: 'setpoint dev heal node' first")
	errBadEnd     = errors.New("it has not ended well and may still hold its data, so it is not started again: end 'setpoint dev' and start it anew")
	errPartly     = errors.New("some of the time may have passed")
	errRealClock  = errors.New("this cluster goes by the clock of the machine, which is not moved: a cluster in memory has a clock of its own, " +
		"as in Go tests (setpointtest) and 'setpoint testserver'")
)

// lessons kills and heals parts of a cluster with Config.Lessons, one order after the other. It implements admin.Lessons.
type lessons struct {
	cluster *Cluster
	// life ends when Cluster.Stop begins, and with it the order that is being carried out.
	life context.Context
	mu   sync.Mutex
}

// do carries out one order at a time, with a context that ends with the cluster too, and none once the cluster stops.
func (l *lessons) do(ctx context.Context, order func(ctx context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.life.Err() != nil {
		return errStops
	}
	return order(ctx)
}

// await returns when no order is carried out any more. life has ended, so none begins.
func (l *lessons) await() {
	l.mu.Lock()
	defer l.mu.Unlock()
}

// Kill switches a simulated node off, stops a server, or has the containers of a simulated pod crash.
func (l *lessons) Kill(ctx context.Context, part, name string) error {
	return l.do(ctx, func(ctx context.Context) error { return l.kill(ctx, part, name) })
}

func (l *lessons) kill(ctx context.Context, part, name string) error {
	switch part {
	case "node":
		return l.switchNode(ctx, name, false)
	case "server":
		return l.cluster.stopServer(name)
	}
	return l.changePod(ctx, name, func(pod *corev1.Pod, now metav1.Time) (corev1.PodStatus, error) {
		if pod.Status.Phase != corev1.PodRunning {
			return pod.Status, errNotRunning
		}
		return simulated.Crash(pod, now), nil
	}, true)
}

// Heal undoes Kill.
func (l *lessons) Heal(ctx context.Context, part, name string) error {
	return l.do(ctx, func(ctx context.Context) error { return l.heal(ctx, part, name) })
}

func (l *lessons) heal(ctx context.Context, part, name string) error {
	switch part {
	case "node":
		return l.switchNode(ctx, name, true)
	case "server":
		return l.cluster.startStopped(ctx, name)
	}
	return l.changePod(ctx, name, func(pod *corev1.Pod, now metav1.Time) (corev1.PodStatus, error) {
		if pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded {
			return pod.Status, errEnded
		}
		return simulated.Mend(pod, now), nil
	}, false)
}

// NoClock refuses to move a clock that is not the cluster's own.
func (l *lessons) NoClock() error {
	if l.cluster.clock == nil {
		return errRealClock
	}
	return nil
}

// Advance moves the clock of a cluster in memory. Whoever orders it comes over a socket: each step waits until requests of this process's
// own have their answers.
func (l *lessons) Advance(ctx context.Context, d time.Duration) error {
	if err := l.NoClock(); err != nil {
		return err
	}
	return l.do(ctx, func(ctx context.Context) error {
		if err := l.cluster.Advance(ctx, d); err != nil {
			return fmt.Errorf("%w: %w", errPartly, err)
		}
		return nil
	})
}

func (l *lessons) switchNode(ctx context.Context, name string, on bool) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	if !isSimulated(node) {
		return errRealNode
	}
	l.cluster.SwitchNode(name, on)
	return nil
}

func isSimulated(node *corev1.Node) bool {
	_, is := node.Labels[simulated.Label]
	return is
}

// client reads and writes as the simulated nodes do.
func (l *lessons) client() (kubernetes.Interface, error) {
	return l.cluster.client(simulated.User, trust.GroupServers)
}

// changePod writes another status of a simulated pod, unless it is crashed already, or not, as is wanted.
func (l *lessons) changePod(
	ctx context.Context, key string, next func(*corev1.Pod, metav1.Time) (corev1.PodStatus, error), crashed bool,
) error {
	client, err := l.client()
	if err != nil {
		return err
	}
	namespace, name, found := strings.Cut(key, "/")
	if !found {
		namespace, name = metav1.NamespaceDefault, key
	}
	pods := client.CoreV1().Pods(namespace)
	return retry.RetryOnConflict(retry.DefaultRetry, func() error {
		pod, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if err := l.onLiveNode(ctx, client, pod); err != nil {
			return err
		}
		status, err := next(pod, metav1.NewTime(l.cluster.Clock().Now()))
		if err != nil || simulated.Crashed(pod) == crashed {
			return err
		}
		pod.Status = status
		_, err = pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{})
		return err
	})
}

// onLiveNode refuses a pod whose node is no simulated one, or is switched off: nobody is there who could tell of its containers.
func (l *lessons) onLiveNode(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	if err := onSimulatedNode(ctx, client, pod); err != nil {
		return err
	}
	if l.cluster.outage.Off(pod.Spec.NodeName) {
		return errNodeOff
	}
	return nil
}

func onSimulatedNode(ctx context.Context, client kubernetes.Interface, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" {
		return errNotRunning
	}
	node, err := client.CoreV1().Nodes().Get(ctx, pod.Spec.NodeName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return errRealPod
	}
	if err == nil && !isSimulated(node) {
		return errRealPod
	}
	return err
}

// stopServer stops one server of several, in the background: the request that orders it may be its own.
func (c *Cluster) stopServer(name string) error {
	running := len(c.replicas.up())
	c.replicas.mu.Lock()
	i, err := c.replicas.index(name)
	stopped := err == nil && c.replicas.servers[i].ended != nil
	servesPort := err == nil && c.replicas.servers[i].servesPort
	c.replicas.mu.Unlock()
	switch {
	case err != nil:
		return noServer(err)
	case stopped:
		return nil
	case running == 1:
		return errLastServer
	case servesPort:
		return errOnlyPort
	case c.config.InMemory:
		return c.CrashServer(name)
	}
	c.replicas.mu.Lock()
	defer c.replicas.mu.Unlock()
	c.replicas.servers[i].stop()
	return nil
}

// noServer is an answer of the API.
func noServer(err error) error {
	notFound := apierrors.NewNotFound(corev1.Resource("servers"), "")
	notFound.ErrStatus.Message = err.Error()
	return notFound
}

// startStopped starts a server again that stopServer stopped, at its former address, when it has ended. One that did not end well may
// have its store open still, and is not started beside it.
func (c *Cluster) startStopped(ctx context.Context, name string) error {
	c.replicas.mu.RLock()
	i, err := c.replicas.index(name)
	runs := err == nil && c.replicas.servers[i].ended == nil
	c.replicas.mu.RUnlock()
	switch {
	case err != nil:
		return noServer(err)
	case runs:
		return nil
	case c.config.InMemory:
		return c.StartServer(c.running, name)
	}
	return c.startAgain(ctx, name)
}

func (c *Cluster) startAgain(ctx context.Context, name string) error {
	i, config, ended, err := c.replicas.crashed(name)
	if err != nil {
		return err
	}
	switch err := howEnded(ctx, ended); {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%w: %w", errBadEnd, err)
	}
	if config.Listener, err = process.Listen(config.Listener.Addr().String(), process.PortFlag); err != nil {
		return err
	}
	config.PodListener = c.listenAgainForPods(config.Listener)
	if err := c.replicas.start(c.running, i, config); err != nil {
		return fmt.Errorf("starting %s again: %w", name, err)
	}
	c.watch(i)
	return nil
}

// listenAgainForPods opens the way in for pods of this machine again, to those that were let in before: perhaps no server leads now that
// could be asked who they are.
func (c *Cluster) listenAgainForPods(beside net.Listener) net.Listener {
	if len(c.forPods) == 0 {
		return nil
	}
	if listener, _ := podlistener.Open(beside, c.forPods[0].Admitted()); listener != nil {
		return listener
	}
	return nil
}

// watch has Wait end with the failure of a server that was started again, until the server is stopped.
func (c *Cluster) watch(i int) {
	ctx, unwatch := context.WithCancel(c.running)
	c.replicas.mu.Lock()
	one := c.replicas.servers[i]
	one.unwatch = unwatch
	c.replicas.mu.Unlock()
	c.watchers.Go(func() {
		defer unwatch()
		c.fail(one.Wait(ctx))
	})
}
