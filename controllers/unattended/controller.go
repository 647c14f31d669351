package unattended

import (
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/controllers/reconcile"
	"github.com/setpoint-io/setpoint/internal/unattended"
)

const (
	component = "unattended-controller"
	// youth is how old an object may be that gets its event: as long as events are kept.
	youth = time.Hour
	// messageMaxBytes bounds an event's message, as the API does.
	messageMaxBytes = 1024
)

var services = corev1.SchemeGroupVersion.WithResource("services")

// New writes events on objects that nobody acts on. monitors are informers of all kinds; one
// that is missing is passed over.
func New(monitors func() map[schema.GroupVersionResource]cache.SharedIndexInformer) reconcile.Controller {
	return reconcile.Controller{
		Name:  component,
		Reads: []reconcile.Read{reconcile.Services, reconcile.Events},
		Run:   func(ctx context.Context, env *reconcile.Env) error { return run(ctx, env, monitors()) },
	}
}

// object names one object of a listed kind.
type object struct {
	resource schema.GroupVersionResource
	name     cache.ObjectName
}

type controller struct {
	env      *reconcile.Env
	services reconcile.Cache[*corev1.Service]
	events   reconcile.Cache[*corev1.Event]
	monitors map[schema.GroupVersionResource]cache.SharedIndexInformer
}

func run(ctx context.Context, env *reconcile.Env, monitors map[schema.GroupVersionResource]cache.SharedIndexInformer) error {
	c := &controller{env, reconcile.Services.From(env), reconcile.Events.From(env), monitors}
	sources := []reconcile.SourceOf[object]{
		reconcile.Changes[object](c.events, nil), reconcile.Changes(c.services, objectsOf(services)),
	}
	for _, k := range unattended.Kinds() {
		if informer := monitors[k.Resource]; informer != nil {
			sources = append(sources, reconcile.SourceOf[object]{Informer: informer, Map: objectsOf(k.Resource)})
		}
	}
	return reconcile.Run(ctx, reconcile.ConfigOf[object]{
		Name: "unattended", Reconcile: c.reconcile, Sources: sources, Workers: 1, Env: env,
	})
}

// objectsOf maps an object of a resource that is there to itself.
func objectsOf(resource schema.GroupVersionResource) func(before, after metav1.Object) []object {
	return func(_, after metav1.Object) []object {
		if after == nil {
			return nil
		}
		return []object{{resource, reconcile.KeyOf(after)}}
	}
}

// object finds what a key names; nil if it is gone.
func (c *controller) object(key object) (metav1.Object, error) {
	if key.resource == services {
		service, err := c.services.Get(key.name)
		if err != nil {
			return nil, ignoreGone(err)
		}
		return service, nil
	}
	item, found, err := c.monitors[key.resource].GetStore().GetByKey(key.name.String())
	if err != nil || !found {
		return nil, err
	}
	return item.(metav1.Object), nil
}

func ignoreGone(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

func (c *controller) reconcile(ctx context.Context, key object) (time.Duration, error) {
	about, err := c.object(key)
	if about == nil || err != nil {
		return 0, err
	}
	kind, text := judge(key.resource, about)
	if text == "" || about.GetDeletionTimestamp() != nil || c.env.Now().Sub(about.GetCreationTimestamp().Time) >= youth {
		return 0, nil
	}
	event := newEvent(key.resource.GroupVersion().WithKind(kind), about, text, metav1.NewTime(c.env.Now()))
	if _, err := c.events.Get(reconcile.Key{Namespace: event.Namespace, Name: event.Name}); err == nil {
		return 0, nil
	}
	_, err = c.env.Client.CoreV1().Events(event.Namespace).Create(reconcile.WithCause(ctx, about), event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("event on %s %s: %w", key.resource.Resource, key.name, err)
}

// judge is the object's kind and what nobody does for it; empty for most Services.
func judge(resource schema.GroupVersionResource, item any) (kind, text string) {
	if service, ok := item.(*corev1.Service); ok {
		return "Service", strings.Join(unattended.Service(&service.Spec), "; ")
	}
	for _, k := range unattended.Kinds() {
		if k.Resource == resource {
			return k.Name, k.Text
		}
	}
	return "", ""
}

// newEvent is the object's one event. Its name is that of its uid.
func newEvent(kind schema.GroupVersionKind, about metav1.Object, text string, now metav1.Time) *corev1.Event {
	namespace := about.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return &corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "unattended." + string(about.GetUID())},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: kind.GroupVersion().
				String(),
			Kind: kind.Kind, Namespace: about.GetNamespace(), Name: about.GetName(), UID: about.GetUID(),
		},
		Type: corev1.EventTypeWarning, Reason: unattended.Reason, Message: text[:min(len(text), messageMaxBytes)], Count: 1,
		FirstTimestamp: now, LastTimestamp: now,
		Source: corev1.EventSource{Component: component}, ReportingController: component,
	}
}
