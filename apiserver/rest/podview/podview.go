package podview

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

// Store lists and watches objects of one kind.
type Store interface {
	rest.Lister
	rest.Watcher
}

// Of returns what shows nodes little of pods that are not theirs; of other kinds it is the store itself.
func Of(kind schema.GroupVersionResource, store Store) Store {
	if kind != corev1.SchemeGroupVersion.WithResource("pods") {
		return store
	}
	return view{store}
}

type view struct{ Store }

// List implements rest.Lister.
func (v view) List(ctx context.Context, o *internalversion.ListOptions) (runtime.Object, error) {
	list, err := v.Store.List(ctx, o)
	if err != nil || !narrow(ctx, o.FieldSelector) {
		return list, err
	}
	pods := whole(list).(*corev1.PodList) // its items are copies, of what others read too
	for i := range pods.Items {
		pods.Items[i] = *littleOf(&pods.Items[i])
	}
	return pods, nil
}

// Watch implements rest.Watcher.
func (v view) Watch(ctx context.Context, o *internalversion.ListOptions) (watch.Interface, error) {
	w, err := v.Store.Watch(ctx, o)
	if err != nil || !narrow(ctx, o.FieldSelector) {
		return w, err
	}
	return watch.Filter(w, func(e watch.Event) (watch.Event, bool) {
		if pod, ok := whole(e.Object).(*corev1.Pod); ok && e.Type != watch.Bookmark {
			e.Object = littleOf(pod)
		}
		return e, true
	}), nil
}

// whole is what is behind an object that has its bytes already.
func whole(object runtime.Object) runtime.Object {
	if kept, ok := object.(runtime.CacheableObject); ok {
		return kept.GetObject()
	}
	return object
}

// narrow reports whether a node asks for pods that are not all its own.
func narrow(ctx context.Context, by fields.Selector) bool {
	user, ok := request.UserFrom(ctx)
	if !ok {
		return false
	}
	node, ok := auth.NodeOf(user)
	if !ok || by == nil {
		return ok
	}
	on, narrowed := by.RequiresExactMatch("spec.nodeName")
	return !narrowed || on != node
}

// littleOf is who a pod is, where, and by which names its ports go.
func littleOf(p *corev1.Pod) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion, Labels: p.Labels,
			CreationTimestamp: p.CreationTimestamp, DeletionTimestamp: p.DeletionTimestamp,
		},
		Spec: corev1.PodSpec{
			NodeName: p.Spec.NodeName, HostNetwork: p.Spec.HostNetwork,
			InitContainers: namedPorts(p.Spec.InitContainers), Containers: namedPorts(p.Spec.Containers),
		},
		Status: corev1.PodStatus{Phase: p.Status.Phase, PodIP: p.Status.PodIP, PodIPs: p.Status.PodIPs},
	}
}

// namedPorts are containers of which only ports are known that have a name.
func namedPorts(containers []corev1.Container) []corev1.Container {
	var some []corev1.Container
	for i := range containers {
		ports := slices.DeleteFunc(slices.Clone(containers[i].Ports), func(p corev1.ContainerPort) bool { return p.Name == "" })
		if len(ports) > 0 {
			some = append(some, corev1.Container{Name: containers[i].Name, Ports: ports})
		}
	}
	return some
}
