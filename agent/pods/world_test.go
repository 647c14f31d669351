package pods

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/pods/podstest"
	"github.com/setpoint-io/setpoint/agent/pods/status"
	"github.com/setpoint-io/setpoint/agent/runtime/images"
	"github.com/setpoint-io/setpoint/agent/runtime/logs"
	"github.com/setpoint-io/setpoint/agent/runtime/podconfig"
	"github.com/setpoint-io/setpoint/agent/volumes"
)

// world is an API, a runtime, and an agent's pod manager between them.
type world struct {
	t       *testing.T
	client  *fake.Clientset
	runtime *podstest.Runtime
	manager *Manager
	events  *recorder
	dir     string
	logs    string   // "": in dir
	links   string   // "": none
	devices *dongles // nil: none
	pinning Pinning
	claims  *claims // nil: none
	heard   heard
	hostIP  string // "": 192.0.2.1
	// pressure of the node.
	pressure []corev1.NodeConditionType
	ctx      context.Context // of the agent
	cancel   context.CancelFunc
	done     chan error
}

// inBubble runs body in a world whose runtime knows the programs.
func inBubble(t *testing.T, programs map[string]podstest.Program, body func(w *world)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, client: fake.NewClientset(), runtime: podstest.New(programs), events: &recorder{}, dir: dir}
		w.startAgent()
		body(w)
		w.stopAgent()
	})
}

func (w *world) startAgent() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.ctx = ctx
	w.cancel, w.done = cancel, make(chan error, 1)
	factory := informers.NewSharedInformerFactory(w.client, 0)
	informer := factory.Core().V1().Pods().Informer()
	objects := lookups{client: w.client}
	sender := status.NewManager(status.Config{Client: w.client})
	dirs := podconfig.Dirs{Root: w.dir, LogsRoot: w.logs}
	cfg := Config{
		LogLinks: logs.Links{Dir: w.links},
		NodeName: "n1", Client: w.client, Runtime: w.runtime, RuntimeName: "setpoint", HostIPs: func() []string { return []string{cmp.Or(w.hostIP, "192.0.2.1")} }, Dirs: dirs,
		Objects: objects, Events: w.events, Status: sender,
		Images:         images.New(images.Config{Service: w.runtime, Events: w.events, Dir: dirs.ImageAccess(), Secret: objects.Secret}),
		Volumes:        volumes.New(volumes.Config{Objects: objects, Dirs: dirs, WithoutMounts: true}),
		Allocatable:    func() corev1.ResourceList { return corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("4")} },
		RuntimeHandler: func(_ context.Context, class string) (string, error) { return "handler-of-" + class, nil },
		Pressure:       func() []corev1.NodeConditionType { return w.pressure },
		UserAgent:      "kube-probe/test",
		Listener:       &w.heard,
	}
	if w.devices != nil {
		cfg.Devices = w.devices
	}
	if w.pinning != nil {
		cfg.Pinning = w.pinning
	}
	if w.claims != nil {
		cfg.Claims = w.claims
	}
	m := New(cfg)
	w.manager = m
	go func() {
		var senders sync.WaitGroup
		senders.Go(func() { sender.Run(ctx) })
		factory.StartWithContext(ctx)
		err := m.Run(ctx, informer)
		factory.Shutdown()
		senders.Wait()
		w.done <- err
	}()
	synctest.Wait()
}

func (w *world) stopAgent() {
	w.cancel()
	if err := <-w.done; err != nil {
		w.t.Errorf("Run: %v", err)
	}
}

// recorder keeps events as "Reason message".
type recorder struct {
	mu   sync.Mutex
	list []string
}

func (r *recorder) Event(_ runtime.Object, _, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, reason+" "+message)
}

func (r *recorder) Eventf(o runtime.Object, kind, reason, format string, args ...any) {
	r.Event(o, kind, reason, fmt.Sprintf(format, args...))
}

func (r *recorder) AnnotatedEventf(o runtime.Object, _ map[string]string, kind, reason, format string, args ...any) {
	r.Eventf(o, kind, reason, format, args...)
}

func (r *recorder) has(part string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.ContainsFunc(r.list, func(e string) bool { return strings.Contains(e, part) })
}

func (r *recorder) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return strings.Join(r.list, "\n")
}

// lookups reads straight from the fake API.
type lookups struct {
	volumes.Objects // nil: what is not below is not asked for
	client          *fake.Clientset
}

func (l lookups) ConfigMap(ctx context.Context, ns, name string) (*corev1.ConfigMap, error) {
	return l.client.CoreV1().ConfigMaps(ns).Get(ctx, name, metav1.GetOptions{})
}

func (l lookups) Secret(ctx context.Context, ns, name string) (*corev1.Secret, error) {
	return l.client.CoreV1().Secrets(ns).Get(ctx, name, metav1.GetOptions{})
}

func (l lookups) Services(ctx context.Context, ns string) ([]*corev1.Service, error) { return nil, nil }

func (l lookups) Token(context.Context, *corev1.Pod, string, int64) (string, time.Time, error) {
	return "token", time.Now().Add(time.Hour), nil
}

func (l lookups) Volume(context.Context, string, string, *corev1.Pod) (*corev1.PersistentVolume, error) {
	return nil, errors.New("no volumes here")
}

func newPod(name string, images ...string) *corev1.Pod {
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID("uid-" + name), Generation: 1},
		Spec:       corev1.PodSpec{NodeName: "n1", RestartPolicy: corev1.RestartPolicyAlways},
	}
	for i, image := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: fmt.Sprintf("c%d", i), Image: image,
			ImagePullPolicy: corev1.PullIfNotPresent, TerminationMessagePath: "/dev/termination-log"})
	}
	return p
}

func (w *world) create(p *corev1.Pod) {
	w.t.Helper()
	if _, err := w.client.CoreV1().Pods(p.Namespace).Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// settle lets everything that needs no time happen, and the status debounce pass.
func (w *world) settle() {
	synctest.Wait()
	time.Sleep(2 * status.DefaultDebounce)
	synctest.Wait()
}

func (w *world) get(name string) *corev1.Pod {
	w.t.Helper()
	p, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return p
}

// delete starts a graceful deletion, as the API server does it.
func (w *world) delete(name string, grace int64) {
	w.t.Helper()
	p := w.get(name)
	now := metav1.Now()
	p.DeletionTimestamp, p.DeletionGracePeriodSeconds = &now, &grace
	if _, err := w.client.CoreV1().Pods("default").Update(w.t.Context(), p, metav1.UpdateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	synctest.Wait()
}

func (w *world) exists(name string) bool {
	_, err := w.client.CoreV1().Pods("default").Get(w.t.Context(), name, metav1.GetOptions{})
	return !apierrors.IsNotFound(err)
}

func condition(p *corev1.Pod, t corev1.PodConditionType) corev1.ConditionStatus {
	for _, c := range p.Status.Conditions {
		if c.Type == t {
			return c.Status
		}
	}
	return ""
}
