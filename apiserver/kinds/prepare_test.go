package kinds

import (
	"net/url"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
)

func TestNamespaceIsHeldByItsFinalizer(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	prepareNamespaceCreate(ns)
	prepareNamespaceCreate(ns)
	if diff := cmp.Diff([]corev1.FinalizerName{"kubernetes"}, ns.Spec.Finalizers); diff != "" {
		t.Error(diff)
	}
	if ns.Labels[corev1.LabelMetadataName] != "shop" || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("namespace = %+v", ns)
	}
	updated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	prepareNamespaceUpdate(updated, ns)
	if finalizing := namespaces().Finalizing; !finalizing(updated) || finalizing(&corev1.Namespace{}) {
		t.Error("an update must keep the finalizer")
	}
}

func TestNamespaceStatusFollowsDeletion(t *testing.T) {
	deleted := metav1.ObjectMeta{Name: "a", DeletionTimestamp: &metav1.Time{Time: now}}
	for name, test := range map[string]struct {
		ns   corev1.Namespace
		want []string
	}{
		"active":              {corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "Active"}}, nil},
		"terminating":         {corev1.Namespace{ObjectMeta: deleted, Status: corev1.NamespaceStatus{Phase: "Terminating"}}, nil},
		"terminating, active": {corev1.Namespace{ObjectMeta: deleted, Status: corev1.NamespaceStatus{Phase: "Active"}}, []string{"status.phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"}},
		"early":               {corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "Terminating"}}, []string{"status.phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, messages(validateNamespaceStatus(&test.ns, nil))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}

func TestDeploymentAnnotationsCountAsSpec(t *testing.T) {
	old := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	d := old.DeepCopy()
	prepareDeploymentUpdate(d, old)
	if d.Generation != 3 {
		t.Errorf("generation = %d after no change", d.Generation)
	}
	d.Annotations = map[string]string{"a": "b"}
	prepareDeploymentUpdate(d, old)
	if d.Generation != 4 {
		t.Errorf("generation = %d, want 4", d.Generation)
	}
}

func TestEndpointSliceCountsItsChanges(t *testing.T) {
	old := &discoveryv1.EndpointSlice{AddressType: discoveryv1.AddressTypeIPv4}
	old.Generation = 2
	for name, test := range map[string]struct {
		change func(*discoveryv1.EndpointSlice)
		want   int64
	}{
		"nothing":     {func(*discoveryv1.EndpointSlice) {}, 2},
		"annotations": {func(s *discoveryv1.EndpointSlice) { s.Annotations = map[string]string{"a": "b"} }, 2},
		"labels":      {func(s *discoveryv1.EndpointSlice) { s.Labels = map[string]string{"a": "b"} }, 3},
		"endpoints":   {func(s *discoveryv1.EndpointSlice) { s.Endpoints = []discoveryv1.Endpoint{{}} }, 3},
		"ports":       {func(s *discoveryv1.EndpointSlice) { s.Ports = []discoveryv1.EndpointPort{{}} }, 3},
	} {
		t.Run(name, func(t *testing.T) {
			slice := old.DeepCopy()
			test.change(slice)
			prepareEndpointSliceUpdate(slice, old)
			if slice.Generation != test.want {
				t.Errorf("generation = %d, want %d", slice.Generation, test.want)
			}
		})
	}
}

func TestStatusCountsMustAgree(t *testing.T) {
	rs := &appsv1.ReplicaSetStatus{Replicas: 1, ReadyReplicas: 2, AvailableReplicas: 3}
	if diff := cmp.Diff([]string{
		"status.availableReplicas: Invalid value: 3: cannot be greater than readyReplicas",
		"status.availableReplicas: Invalid value: 3: cannot be greater than status.replicas",
		"status.readyReplicas: Invalid value: 2: cannot be greater than status.replicas",
	}, messages(validateReplicaSetStatus(rs))); diff != "" {
		t.Error("replica set (-want +got):\n", diff)
	}
	old := &appsv1.Deployment{Status: appsv1.DeploymentStatus{CollisionCount: ptr.To[int32](2)}}
	d := &appsv1.Deployment{Status: appsv1.DeploymentStatus{UpdatedReplicas: 1, CollisionCount: ptr.To[int32](1)}}
	if diff := cmp.Diff([]string{
		"status.collisionCount: Invalid value: 1: cannot be decremented",
		"status.updatedReplicas: Invalid value: 1: cannot be greater than status.replicas",
	}, messages(validateDeploymentStatus(d, old))); diff != "" {
		t.Error("deployment (-want +got):\n", diff)
	}
}

func TestPodOptionsFromQuery(t *testing.T) {
	codec := runtime.NewParameterCodec(scheme())
	read := func(text string, into runtime.Object) error {
		values, err := url.ParseQuery(text)
		if err != nil {
			t.Fatal(err)
		}
		return codec.DecodeParameters(values, corev1.SchemeGroupVersion, into)
	}
	logs := &corev1.PodLogOptions{}
	if err := read("container=app&follow=true&previous=0&tailLines=5&sinceTime=2026-07-01T12:00:00Z&timestamps", logs); err != nil {
		t.Fatal(err)
	}
	since := metav1.NewTime(now)
	if diff := cmp.Diff(&corev1.PodLogOptions{Container: "app", Follow: true, TailLines: ptr.To[int64](5), SinceTime: &since, Timestamps: true}, logs); diff != "" {
		t.Error("log (-want +got):\n", diff)
	}
	exec := &corev1.PodExecOptions{}
	if err := read("stdout=1&stdin=true&tty=false&container=app&command=sh&command=-c&command=ls", exec); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&corev1.PodExecOptions{Stdout: true, Stdin: true, Container: "app", Command: []string{"sh", "-c", "ls"}}, exec); diff != "" {
		t.Error("exec (-want +got):\n", diff)
	}
	ports := &corev1.PodPortForwardOptions{}
	if err := read("ports=80,81&ports=82", ports); err != nil || !cmp.Equal(ports.Ports, []int32{80, 81, 82}) {
		t.Errorf("ports = %v (%v)", ports.Ports, err)
	}
	if err := read("tailLines=many", &corev1.PodLogOptions{}); err == nil {
		t.Error("a bad number must be refused")
	}
}

func TestSubresourcesForDiscovery(t *testing.T) {
	want := map[string][]string{
		"pods":       {"attach", "binding", "eviction", "exec", "log", "portforward"},
		"namespaces": {"finalize"},
	}
	got := map[string][]string{}
	for _, kind := range All() {
		for _, sub := range kind.Subresources {
			got[kind.Plural] = append(got[kind.Plural], sub.Name)
			if sub.Kind.Empty() || len(sub.Verbs) == 0 || !scheme().Recognizes(sub.Kind) {
				t.Errorf("%s/%s is incomplete: %+v", kind.Plural, sub.Name, sub)
			}
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("(-want +got):\n", diff)
	}
}
