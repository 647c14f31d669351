package serverpods

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/parts"
)

const (
	// interval is how often every server is asked how its parts are, as often as a kubelet probes.
	interval = 10 * time.Second
	// silenceMax is how long a server may leave questions unanswered until its parts are not Ready.
	silenceMax = 10 * time.Second
)

// Server is one server of the control plane, as it is now.
type Server struct {
	// Name is the server's, Address where it is reached; empty: it is known only on its machine.
	Name, Address string
	// Leads says that the control loops act there, Voter that they could.
	Leads, Voter bool
	// Err is why it does not answer; what follows is unknown then.
	Err error
	// Version is Setpoint's on that server, StartedAt when it started.
	Version   string
	StartedAt time.Time
	// Troubles are why a part is not ready, by part; one that is ready is not there.
	Troubles map[string]string
}

// Cluster tells of the servers.
type Cluster struct {
	// Members are the names of all servers.
	Members func() []string
	// Ask asks one of them.
	Ask func(ctx context.Context, name string) Server
}

// New keeps the pods of the cluster's servers.
func New(cluster Cluster) reconcile.Controller {
	return reconcile.Controller{
		Name:  "server-pods-controller",
		Reads: Reads(),
		Run: func(ctx context.Context, env *reconcile.Env) error {
			c := &controller{env: env, cluster: cluster, pods: reconcile.Pods.From(env), silent: map[string]time.Time{}}
			return c.run(ctx)
		},
	}
}

// Reads are what the loop reads from caches.
func Reads() []reconcile.Read { return []reconcile.Read{reconcile.Pods} }

// controller is one term of the loop. Its one worker alone uses silent.
type controller struct {
	env     *reconcile.Env
	cluster Cluster
	pods    reconcile.Cache[*corev1.Pod]
	silent  map[string]time.Time // since when a server leaves questions unanswered
}

func (c *controller) run(ctx context.Context) error {
	return reconcile.Run(ctx, reconcile.Config{
		Name:      "serverpods",
		Reconcile: func(ctx context.Context, _ reconcile.Key) (time.Duration, error) { return interval, c.keep(ctx) },
		Sources:   []reconcile.Source{reconcile.Changes(c.pods, ours)},
		Feeds:     []reconcile.Feed{reconcile.Once(everything)},
		Workers:   1,
		Env:       c.env,
	})
}

// everything is the only key: each pass looks at all servers.
var everything = reconcile.Key{Name: "all servers"}

// ours looks again when a pod of a server goes or is changed.
func ours(before, after metav1.Object) []reconcile.Key {
	for _, o := range []metav1.Object{before, after} {
		if pod, ok := o.(*corev1.Pod); ok {
			if _, _, is := parts.Of(pod); is {
				return []reconcile.Key{everything}
			}
		}
	}
	return nil
}

func (c *controller) keep(ctx context.Context) error {
	all, err := c.pods.List(parts.Namespace, nil)
	if err != nil {
		return err
	}
	stored := map[string]*corev1.Pod{}
	for _, pod := range all {
		if _, _, ours := parts.Of(pod); ours {
			stored[pod.Name] = pod
		}
	}
	var errs []error
	for _, server := range c.ask(ctx) {
		for _, part := range parts.All() {
			name := parts.PodName(part, server.Name)
			errs = append(errs, c.keepPod(ctx, stored[name], part, server))
			delete(stored, name)
		}
	}
	for _, pod := range stored {
		errs = append(errs, c.remove(reconcile.WithCause(ctx, pod), pod))
	}
	return errors.Join(errs...)
}

// ask asks all servers at once.
func (c *controller) ask(ctx context.Context) []Server {
	names := c.cluster.Members()
	servers := make([]Server, len(names))
	var asking sync.WaitGroup
	for i, name := range names {
		asking.Go(func() { servers[i] = c.cluster.Ask(ctx, name) })
	}
	asking.Wait()
	silent := map[string]time.Time{}
	for _, s := range servers {
		if s.Err == nil {
			continue
		}
		silent[s.Name] = c.env.Now()
		if since, before := c.silent[s.Name]; before {
			silent[s.Name] = since
		}
	}
	c.silent = silent
	return servers
}

// keepPod brings one pod to what its server says. One that is being deleted is removed: its deletion makes it come back.
func (c *controller) keepPod(ctx context.Context, have *corev1.Pod, part string, server Server) error {
	if have != nil && have.DeletionTimestamp != nil {
		return c.remove(ctx, have)
	}
	if server.Err != nil && (have == nil || c.env.Now().Sub(c.silent[server.Name]) < silenceMax) {
		return nil // what it is cannot be said yet
	}
	var err error
	if have == nil {
		have, err = c.env.Client.CoreV1().Pods(parts.Namespace).Create(ctx, podOf(part, server), metav1.CreateOptions{})
		if apierrors.IsAlreadyExists(err) {
			return nil // the cache will show it
		}
		if err != nil {
			return fmt.Errorf("create pod %s: %w", parts.PodName(part, server.Name), err)
		}
	}
	if server.Err == nil && have.Spec.Containers[0].Image != imageOf(server.Version) {
		next := have.DeepCopy()
		next.Spec.Containers[0].Image = imageOf(server.Version)
		if have, err = c.env.Client.CoreV1().Pods(parts.Namespace).Update(ctx, next, metav1.UpdateOptions{}); err != nil {
			return ignoreOutdated(err)
		}
	}
	status := statusOf(have, part, server, c.env.Now())
	if apiequality.Semantic.DeepEqual(have.Status, status) {
		return nil
	}
	next := have.DeepCopy()
	next.Status = status
	_, err = c.env.Client.CoreV1().Pods(parts.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return ignoreOutdated(err)
}

func (c *controller) remove(ctx context.Context, pod *corev1.Pod) error {
	err := c.env.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: new(int64), Preconditions: metav1.NewUIDPreconditions(string(pod.UID)),
	})
	return ignoreOutdated(err)
}

// ignoreOutdated: the cache will show what has changed meanwhile, and the loop looks again.
func ignoreOutdated(err error) error {
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}
