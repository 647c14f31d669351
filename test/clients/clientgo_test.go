package clients

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/retry"
)

// TestClientGo uses what programs take from client-go, on one cluster.
func TestClientGo(t *testing.T) {
	c := startServers(t)
	t.Run("informers", func(t *testing.T) { informersAgree(t, c) })
	t.Run("events", func(t *testing.T) { eventsAreCounted(t, c) })
	t.Run("scale", func(t *testing.T) { scaleAnything(t, c) })
	t.Run("conflicts", func(t *testing.T) { writersRetry(t, c) })
	t.Run("election", func(t *testing.T) { leadersAreElected(t, c) })
}

// counter counts the plain lists among a client's requests.
type counter struct {
	next  http.RoundTripper
	lists *atomic.Int64
}

func (c counter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet && r.URL.Query().Get("watch") == "" && strings.HasSuffix(r.URL.Path, "/configmaps") {
		c.lists.Add(1)
	}
	return c.next.RoundTrip(r)
}

// informersAgree follows ConfigMaps as typed (protobuf), unstructured and metadata
// only, through the death of the leading server. None of them lists: the initial
// objects come with the watch, and so does what it missed.
func informersAgree(t *testing.T, c *cluster) {
	var lists atomic.Int64
	config := rest.CopyConfig(c.config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return counter{next, &lists} })
	typed := rest.CopyConfig(config)
	typed.ContentType = "application/vnd.kubernetes.protobuf"
	for i := range 300 {
		createConfigMap(t, c, fmt.Sprintf("before-%d", i))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	all := map[string]cache.SharedIndexInformer{
		"typed":        informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(typed), 0).Core().V1().ConfigMaps().Informer(),
		"unstructured": dynamicinformer.NewFilteredDynamicInformer(dynamic.NewForConfigOrDie(config), configMaps, "", 0, cache.Indexers{}, nil).Informer(),
		"metadata":     metadatainformer.NewFilteredMetadataInformer(metadata.NewForConfigOrDie(config), configMaps, "", 0, cache.Indexers{}, nil).Informer(),
	}
	seen := map[string]chan string{}
	for name, informer := range all {
		seen[name] = follow(t, ctx, informer)
	}
	for name, s := range seen {
		awaitName(t, name, s, "before-299")
	}
	createConfigMap(t, c, "between")
	c.killLeader(t)
	for i := range 20 {
		createConfigMap(t, c, fmt.Sprintf("after-%d", i))
	}
	for name, s := range seen {
		awaitName(t, name, s, "after-19")
		if n := len(all[name].GetStore().ListKeys()); n < 321 {
			t.Errorf("%s: %d objects, want 321 and those of the system", name, n)
		}
	}
	if n := lists.Load(); n != 0 {
		t.Errorf("%d lists, want none", n)
	}
}

// follow runs an informer and sends the names that it hears of.
func follow(t *testing.T, ctx context.Context, informer cache.SharedIndexInformer) chan string {
	t.Helper()
	names := make(chan string, 1000)
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { names <- obj.(metav1.Object).GetName() }})
	mustf(t, err, "adding a handler")
	go informer.RunWithContext(ctx)
	return names
}

func awaitName(t *testing.T, who string, names chan string, want string) {
	t.Helper()
	deadline := time.After(awaitTimeout)
	for {
		select {
		case name := <-names:
			if name == want {
				return
			}
		case <-deadline:
			t.Fatalf("%s: has not heard of %s", who, want)
		}
	}
}

// createConfigMap creates it once, whatever happens to the server that was asked.
func createConfigMap(t *testing.T, c *cluster, name string) {
	t.Helper()
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
	lost := func(err error) bool { return !apierrors.IsAlreadyExists(err) }
	err := retry.OnError(retry.DefaultBackoff, lost, func() error {
		_, err := c.client.CoreV1().ConfigMaps("default").Create(t.Context(), object, metav1.CreateOptions{})
		return err
	})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatalf("creating %s: %v", name, err)
	}
}

// eventsAreCounted records the same thing many times: one event with a count.
func eventsAreCounted(t *testing.T, c *cluster) {
	broadcaster := record.NewBroadcaster(record.WithContext(t.Context()))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: c.client.CoreV1().Events("")})
	recorder := broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "test"})
	about := &corev1.ObjectReference{APIVersion: "v1", Kind: "ConfigMap", Namespace: "default", Name: "counted"}
	for range 7 {
		recorder.Event(about, corev1.EventTypeNormal, "Counted", "the same every time")
	}
	found := make(chan int64, 100)
	informer := dynamicinformer.NewFilteredDynamicInformer(c.dynamic, corev1.SchemeGroupVersion.WithResource("events"), "default", 0, cache.Indexers{},
		func(o *metav1.ListOptions) { o.FieldSelector = "involvedObject.name=counted,reason=Counted" }).Informer()
	report := func(obj any) {
		count, _, _ := unstructured.NestedInt64(obj.(*unstructured.Unstructured).Object, "count")
		found <- count
	}
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: report, UpdateFunc: func(_, obj any) { report(obj) }})
	mustf(t, err, "adding a handler")
	go informer.RunWithContext(t.Context())
	deadline := time.After(awaitTimeout)
	for count := int64(0); count != 7; {
		select {
		case count = <-found:
		case <-deadline:
			t.Fatalf("counted %d, want 7", count)
		}
	}
	if n := len(informer.GetStore().ListKeys()); n != 1 {
		t.Errorf("%d events, want one", n)
	}
}

// scaleAnything scales what it finds in discovery, a custom resource too.
func scaleAnything(t *testing.T, c *cluster) {
	c.kubectl(t, "", "create", "deployment", "web", "--image=example.com/web:v1")
	c.kubectl(t, scalable, "apply", "-f", "-")
	c.kubectl(t, "", "wait", "--for=condition=established", "--timeout=30s", "crd/crews.example.com")
	c.kubectl(t, `{"apiVersion":"example.com/v1","kind":"Crew","metadata":{"name":"maria"},"spec":{"hands":2}}`, "apply", "-f", "-")
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(c.client.Discovery()))
	scales, err := scale.NewForConfig(c.config, mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c.client.Discovery()))
	mustf(t, err, "a client for scales")
	for resource, name := range map[schema.GroupResource]string{{Group: "apps", Resource: "deployments"}: "web", {Group: "example.com", Resource: "crews"}: "maria"} {
		err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
			s, err := scales.Scales("default").Get(t.Context(), resource, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			s.Spec.Replicas = 7
			_, err = scales.Scales("default").Update(t.Context(), resource, s, metav1.UpdateOptions{})
			return err
		})
		mustf(t, err, "scaling %s", resource)
		if s, err := scales.Scales("default").Get(t.Context(), resource, name, metav1.GetOptions{}); err != nil || s.Spec.Replicas != 7 {
			t.Errorf("%s: %+v, %v", resource, s, err)
		}
	}
}

const scalable = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: crews.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: crews, singular: crew, kind: Crew}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {scale: {specReplicasPath: .spec.hands, statusReplicasPath: .status.hands}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// patience is for as many conflicts as there are writers, and more.
var patience = wait.Backoff{Steps: 50, Duration: 5 * time.Millisecond, Factor: 1.1, Jitter: 0.5}

// writersRetry lets many add to one number: each conflict is told, none is lost.
func writersRetry(t *testing.T, c *cluster) {
	const writers, times = 8, 5
	createConfigMap(t, c, "number")
	done := make(chan error)
	for range writers {
		go func() {
			var errs error
			for range times {
				err := retry.RetryOnConflict(patience, func() error { return addOne(t.Context(), c) })
				errs = errors.Join(errs, err)
			}
			done <- errs
		}()
	}
	for range writers {
		mustf(t, <-done, "adding")
	}
	object, err := c.client.CoreV1().ConfigMaps("default").Get(t.Context(), "number", metav1.GetOptions{})
	if err != nil || len(object.Data["ones"]) != writers*times {
		t.Errorf("%v, %v, want %d ones", object.Data, err, writers*times)
	}
}

func addOne(ctx context.Context, c *cluster) error {
	object, err := c.client.CoreV1().ConfigMaps("default").Get(ctx, "number", metav1.GetOptions{})
	if err != nil {
		return err
	}
	object.Data = map[string]string{"ones": object.Data["ones"] + "1"}
	_, err = c.client.CoreV1().ConfigMaps("default").Update(ctx, object, metav1.UpdateOptions{})
	return err
}

// leadersAreElected elects one of two, and the other when it goes.
func leadersAreElected(t *testing.T, c *cluster) {
	leading := make(chan string)
	stop := map[string]context.CancelFunc{}
	for _, name := range []string{"a", "b"} {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		stop[name] = cancel
		lock, err := resourcelock.New(resourcelock.LeasesResourceLock, "default", "election", c.client.CoreV1(), c.client.CoordinationV1(), resourcelock.ResourceLockConfig{Identity: name})
		mustf(t, err, "a lock")
		go leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: 4 * time.Second, RenewDeadline: 3 * time.Second, RetryPeriod: 200 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					select {
					case leading <- name:
					case <-ctx.Done():
					}
				},
				OnStoppedLeading: func() {},
			},
		})
	}
	first := <-leading
	stop[first]()
	if second := <-leading; second == first {
		t.Errorf("%s leads twice", first)
	}
	lease, err := c.client.CoordinationV1().Leases("default").Get(t.Context(), "election", metav1.GetOptions{})
	if err != nil || lease.Spec.LeaseTransitions == nil || *lease.Spec.LeaseTransitions < 1 {
		t.Errorf("%+v, %v", lease.Spec, err)
	}
}
