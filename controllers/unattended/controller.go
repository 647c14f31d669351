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

// New writes events on Services with fields that nobody acts on.
func New() reconcile.Controller {
	return reconcile.Controller{Name: component, Reads: []reconcile.Read{reconcile.Services, reconcile.Events}, Run: run}
}

type controller struct {
	env      *reconcile.Env
	services reconcile.Cache[*corev1.Service]
	events   reconcile.Cache[*corev1.Event]
}

func run(ctx context.Context, env *reconcile.Env) error {
	c := &controller{env, reconcile.Services.From(env), reconcile.Events.From(env)}
	return reconcile.Run(ctx, reconcile.Config{
		Name: "unattended", Reconcile: c.reconcile, Workers: 1, Env: env,
		Sources: []reconcile.Source{reconcile.Changes[reconcile.Key](c.events, nil), reconcile.Changes(c.services, itself)},
	})
}

// itself maps a Service that is there to itself.
func itself(_, after metav1.Object) []reconcile.Key {
	if after == nil {
		return nil
	}
	return []reconcile.Key{reconcile.KeyOf(after)}
}

func (c *controller) reconcile(ctx context.Context, key reconcile.Key) (time.Duration, error) {
	about, err := c.services.Get(key)
	if err != nil {
		return 0, reconcile.IgnoreNotFound(err)
	}
	text := strings.Join(unattended.Service(about), "; ")
	if text == "" || about.DeletionTimestamp != nil || c.env.Now().Sub(about.CreationTimestamp.Time) >= youth {
		return 0, nil
	}
	event := newEvent(corev1.SchemeGroupVersion.WithKind("Service"), about, text, metav1.NewTime(c.env.Now()))
	if _, err := c.events.Get(reconcile.Key{Namespace: event.Namespace, Name: event.Name}); err == nil {
		return 0, nil
	}
	_, err = c.env.Client.CoreV1().Events(event.Namespace).Create(reconcile.WithCause(ctx, about), event, metav1.CreateOptions{})
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) ||
		apierrors.IsNotFound(err) {
		return 0, nil
	}
	return 0, fmt.Errorf("event on Service %s: %w", key, err)
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
