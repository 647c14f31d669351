package machines

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// TestServersAreReplaced: each of the three servers gives way to one on a new machine, under requests and with running pods. No agent is
// touched, no pod starts again, and no request of a client is lost that asks the next server when one does not serve.
func TestServersAreReplaced(t *testing.T) {
	if err := Missing(); err != nil {
		t.Skip("needs root:", err)
	}
	c := New(t, binary(t))
	Until(t, patience, c.nodesNotReady)
	c.deploy(t, "web", 3)
	before := c.containers(t, "web")
	l := startLoad(t, c.Clients)
	start := time.Now()
	for i, old := range slices.Clone(c.Machines) {
		began := time.Now()
		fresh := c.replaceServer(t, l, old, c.Clients[i])
		t.Logf("%s took the place of %s in %.1f s", fresh.Server, old.Server, time.Since(began).Seconds())
	}
	took := time.Since(start)
	Until(t, patience, c.nodesNotReady)
	c.deploy(t, "after", 3) // on all nodes, by agents that know none of the servers with which they began
	if after := c.containers(t, "web"); !maps.Equal(before, after) {
		t.Errorf("containers and restarts were %v and are %v", before, after)
	}
	l.end(t)
	c.kubeconfigFollows(t)
	t.Logf("three servers were replaced in %.1f s, under %s", took.Seconds(), l)
}

// replaceServer makes a new server a member, removes the old one, which says so, and ends it.
func (c *Cluster) replaceServer(t *testing.T, l *load, old *Machine, at kubernetes.Interface) *Machine {
	t.Helper()
	fresh, err := c.AddServer()
	if err != nil {
		t.Fatal(err)
	}
	c.order(t, old, "join", fresh.Server+"="+fresh.endpoint())
	l.use(c.Clients)
	c.order(t, fresh, "remove", old.Server)
	Until(t, patience, func(ctx context.Context) string {
		_, err := at.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		if err == nil || !strings.Contains(err.Error(), old.Server+" was removed from this cluster: ") {
			return fmt.Sprintf("%s does not say that it was removed: %v", old.Server, err)
		}
		return ""
	})
	if err := old.EndServer(); err != nil {
		t.Fatal(err)
	}
	return fresh
}

// kubeconfigFollows: `setpoint kubeconfig` makes one that leads to the new servers alone of one that knows a single one of them.
func (c *Cluster) kubeconfigFollows(t *testing.T) {
	t.Helper()
	at := c.joined[0]
	out, err := at.Command(c.binary, "kubeconfig", "--kubeconfig", c.kubeconfigOf(t, at))
	if err != nil {
		t.Fatal(err, out)
	}
	config, err := clientcmd.Load([]byte(out))
	if err != nil {
		t.Fatal(err, out)
	}
	var leadsTo []string
	for _, way := range config.Contexts {
		leadsTo = append(leadsTo, config.Clusters[way.Cluster].Server)
	}
	slices.Sort(leadsTo)
	var want []string
	for _, m := range c.joined {
		want = append(want, "https://"+m.endpoint())
	}
	if !slices.Equal(leadsTo, want) {
		t.Errorf("a kubeconfig leads to %v, want %v", leadsTo, want)
	}
}

// order gives an order about the members to the server of a machine.
func (c *Cluster) order(t *testing.T, at *Machine, args ...string) {
	t.Helper()
	kubeconfig := c.kubeconfigOf(t, at)
	Until(t, patience, func(context.Context) string {
		out, err := at.Command(c.binary, slices.Concat([]string{"cluster"}, args, []string{"--kubeconfig", kubeconfig})...)
		if err != nil {
			return fmt.Sprintf("cluster %v: %v %s", args, err, out)
		}
		return ""
	})
}

// kubeconfigOf is one, as the machines see it, that leads to the server of a machine alone.
func (c *Cluster) kubeconfigOf(t *testing.T, m *Machine) string {
	t.Helper()
	config, err := clientcmd.LoadFromFile(c.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	config.Clusters[config.Contexts[config.CurrentContext].Cluster].Server = "https://" + m.endpoint()
	maps.DeleteFunc(config.Contexts, func(name string, _ *api.Context) bool { return name != config.CurrentContext })
	name := "only-" + m.Server + ".kubeconfig"
	if err := clientcmd.WriteToFile(*config, filepath.Join(c.trustDir(), name)); err != nil {
		t.Fatal(err)
	}
	return "/etc/setpoint/" + name
}

// containers are the ids of the app's containers and how often each was started again.
func (c *Cluster) containers(t *testing.T, app string) map[string]int32 {
	t.Helper()
	pods, err := c.pods(app)
	if err != nil {
		t.Fatal(err)
	}
	restarts := map[string]int32{}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			restarts[status.ContainerID] = status.RestartCount
		}
	}
	return restarts
}

// load makes objects and reads each back, by any of the servers, until it is ended.
type load struct {
	mu      sync.Mutex
	clients []kubernetes.Interface

	stop        context.CancelFunc
	ended       chan error
	made, tries int
	longest     time.Duration
}

const loadNamespace = "load"

func startLoad(t *testing.T, clients []kubernetes.Interface) *load {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	l := &load{clients: slices.Clone(clients), stop: stop, ended: make(chan error, 1)}
	space := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: loadNamespace}}
	err := l.retried(ctx, func(ctx context.Context, client kubernetes.Interface) error {
		_, err := client.CoreV1().Namespaces().Create(ctx, space, metav1.CreateOptions{})
		return ignoreExists(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() { l.ended <- l.run(ctx) }()
	t.Cleanup(stop)
	return l
}

func (l *load) run(ctx context.Context) error {
	for ctx.Err() == nil {
		name, start := fmt.Sprintf("made-%d", l.made), time.Now()
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
		err := l.retried(ctx, func(ctx context.Context, client kubernetes.Interface) error {
			_, err := client.CoreV1().ConfigMaps(loadNamespace).Create(ctx, object, metav1.CreateOptions{})
			return ignoreExists(err) // the try before was not in vain
		})
		if err == nil {
			err = l.retried(ctx, func(ctx context.Context, client kubernetes.Interface) error {
				_, err := client.CoreV1().ConfigMaps(loadNamespace).Get(ctx, name, metav1.GetOptions{})
				return err
			})
		}
		if ctx.Err() != nil {
			return nil // the last one may have been made or not
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		l.made, l.longest = l.made+1, max(l.longest, time.Since(start))
	}
	return nil
}

func ignoreExists(err error) error {
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// retried asks the servers one after the other, beginning with another one each time, until one answers or patience is over. What is not
// found is an answer.
func (l *load) retried(ctx context.Context, ask func(context.Context, kubernetes.Interface) error) (err error) {
	for end := time.Now().Add(patience); time.Now().Before(end) && ctx.Err() == nil; {
		l.tries++
		client := l.next()
		if err = ask(ctx, client); err == nil || apierrors.IsNotFound(err) {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
		}
	}
	return err
}

func (l *load) next() kubernetes.Interface {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.clients[l.tries%len(l.clients)]
}

// use is told of more servers.
func (l *load) use(clients []kubernetes.Interface) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clients = slices.Clone(clients)
}

// end stops the load, and checks that everything that was made is there.
func (l *load) end(t *testing.T) {
	t.Helper()
	l.stop()
	if err := <-l.ended; err != nil {
		t.Error("a request was lost:", err)
	}
	var there *corev1.ConfigMapList
	err := l.retried(t.Context(), func(ctx context.Context, client kubernetes.Interface) (err error) {
		there, err = client.CoreV1().ConfigMaps(loadNamespace).List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, object := range there.Items {
		names[object.Name] = true
	}
	for i := range l.made {
		if name := fmt.Sprintf("made-%d", i); !names[name] {
			t.Errorf("%s was made and is not there", name)
		}
	}
}

func (l *load) String() string {
	return fmt.Sprintf("%d creates and as many reads, none lost, of which the slowest pair took %.2f s; %d tries went to a server that did not serve",
		l.made, l.longest.Seconds(), l.tries-2*l.made)
}
