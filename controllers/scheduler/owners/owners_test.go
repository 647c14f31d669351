package owners

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func service(namespace, name string, selector map[string]string) *corev1.Service {
	return &corev1.Service{ObjectMeta: meta(namespace, name), Spec: corev1.ServiceSpec{Selector: selector}}
}

func TestSelector(t *testing.T) {
	objects := []runtime.Object{
		service("shop", "web", map[string]string{"app": "web"}),
		service("shop", "all", map[string]string{"tier": "front", "app": "web"}),
		service("shop", "half", map[string]string{"app": "web", "zone": "a"}),
		service("shop", "nobody", nil),
		service("other", "web", map[string]string{"app": "web", "other": "yes"}),
		&appsv1.ReplicaSet{ObjectMeta: meta("shop", "rs"), Spec: appsv1.ReplicaSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"hash": "1"}},
		}},
		&corev1.ReplicationController{ObjectMeta: meta("shop", "rc"), Spec: corev1.ReplicationControllerSpec{Selector: map[string]string{"rc": "1"}}},
	}
	client := fake.NewSimpleClientset(objects...)
	factory := informers.NewSharedInformerFactory(client, 0)
	all := New(factory, func(schema.GroupVersionResource) bool { return true })
	again := New(factory, func(schema.GroupVersionResource) bool { return true }) // finds the index there
	none := New(factory, func(schema.GroupVersionResource) bool { return false })
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	owned := func(kind, name string) metav1.OwnerReference {
		controls := true
		return metav1.OwnerReference{Kind: kind, Name: name, Controller: &controls}
	}
	for _, tt := range []struct {
		name   string
		labels map[string]string
		owners []metav1.OwnerReference
		want   string
	}{
		{"nobody's", nil, nil, ""},
		{"of one service", map[string]string{"app": "web"}, nil, "app=web"},
		{"of two services", map[string]string{"app": "web", "tier": "front"}, nil, "app=web,tier=front"},
		{"of a service and a ReplicaSet", map[string]string{"app": "web"}, []metav1.OwnerReference{owned("ReplicaSet", "rs")}, "app=web,hash=1"},
		{"of a ReplicationController", nil, []metav1.OwnerReference{owned("ReplicationController", "rc")}, "rc=1"},
		{"of an owner that is not there", nil, []metav1.OwnerReference{owned("ReplicaSet", "gone")}, ""},
		{"of another kind", nil, []metav1.OwnerReference{owned("Job", "job")}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "p", Labels: tt.labels, OwnerReferences: tt.owners}}
			for _, o := range []*Owners{all, again} {
				if got := o.Selector(pod).String(); got != tt.want {
					t.Errorf("selector %q, want %q", got, tt.want)
				}
			}
			if got := none.Selector(pod); !got.Empty() {
				t.Errorf("selector %q although nothing is served", got)
			}
		})
	}
}
