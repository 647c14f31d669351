package rest

import (
	"context"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/rest/table"
)

// components are upstream's names of what a control plane consists of. Here it is one
// program: if the log answers there is a leader, and where there is a leader the loops run.
var components = []string{"controller-manager", "etcd-0", "scheduler"}

// ComponentStatuses is the kind that tells how the parts of the control plane are.
func ComponentStatuses() *resource.Any {
	return resource.Erase(resource.Kind[*corev1.ComponentStatus]{
		GroupVersionKind: corev1.SchemeGroupVersion.WithKind("ComponentStatus"), Plural: "componentstatuses", ShortNames: []string{"cs"},
		ClusterScoped: true, ReadOnly: true,
		New:     func() *corev1.ComponentStatus { return &corev1.ComponentStatus{} },
		NewList: func() runtime.Object { return &corev1.ComponentStatusList{} },
		Columns: []resource.Column[*corev1.ComponentStatus]{
			column.Name[*corev1.ComponentStatus](),
			column.Text("Status", "Status of the component conditions", 0, statusCell),
			column.Text("Message", "Message of the component conditions", 0, func(s *corev1.ComponentStatus) string { return s.Conditions[0].Message }),
			column.Text("Error", "Error of the component conditions", 0, func(s *corev1.ComponentStatus) string { return s.Conditions[0].Error }),
		},
	})
}

func statusCell(s *corev1.ComponentStatus) string {
	if s.Conditions[0].Status == corev1.ConditionTrue {
		return "Healthy"
	}
	return "Unhealthy"
}

// componentStore makes the statuses up when they are asked for.
type componentStore struct {
	table.Convertor
	health func(ctx context.Context) error
}

var (
	_ rest.Getter = componentStore{}
	_ rest.Lister = componentStore{}
)

func (e *Endpoints) addComponentStatuses() error {
	if e.config.Health == nil {
		return nil
	}
	kind := ComponentStatuses()
	store := componentStore{table.New(kind, e.config.Storage.Now), e.config.Health}
	scope, err := e.scope(kind, "", kind.GroupVersionKind, store, nil)
	if err != nil {
		return err
	}
	e.kinds[kind.GroupVersionResource()] = kind
	e.add(kind, "", map[string]http.HandlerFunc{
		"get":  withDeprecation(handlers.GetResource(store, scope)),
		"list": withDeprecation(handlers.ListResource(store, nil, scope, false, minWatchTimeout)),
	})
	return nil
}

func withDeprecation(next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		warning.AddWarning(r.Context(), "", "v1 ComponentStatus is deprecated in v1.19+")
		next(w, r)
	}
}

// New implements rest.Storage.
func (s componentStore) New() runtime.Object { return s.Kind.New() }

// NewList implements rest.Lister.
func (s componentStore) NewList() runtime.Object { return s.Kind.NewList() }

// Destroy implements rest.Storage.
func (s componentStore) Destroy() {}

// Get implements rest.Getter.
func (s componentStore) Get(ctx context.Context, name string, _ *metav1.GetOptions) (runtime.Object, error) {
	if !slices.Contains(components, name) {
		return nil, apierrors.NewNotFound(corev1.Resource("componentstatus"), name)
	}
	status := componentStatus(name, s.health(ctx))
	return &status, nil
}

// List implements rest.Lister. Statuses have no labels, and no fields but their names.
func (s componentStore) List(ctx context.Context, options *internalversion.ListOptions) (runtime.Object, error) {
	list := &corev1.ComponentStatusList{Items: []corev1.ComponentStatus{}}
	if options != nil && options.LabelSelector != nil && !options.LabelSelector.Empty() {
		return list, nil
	}
	err := s.health(ctx)
	for _, name := range components {
		if options == nil || options.FieldSelector == nil || options.FieldSelector.Matches(fields.Set{"metadata.name": name}) {
			list.Items = append(list.Items, componentStatus(name, err))
		}
	}
	return list, nil
}

func componentStatus(name string, err error) corev1.ComponentStatus {
	healthy := corev1.ComponentCondition{Type: corev1.ComponentHealthy, Status: corev1.ConditionTrue, Message: "ok"}
	if err != nil {
		healthy.Status, healthy.Message, healthy.Error = corev1.ConditionFalse, "", err.Error()
	}
	return corev1.ComponentStatus{ObjectMeta: metav1.ObjectMeta{Name: name}, Conditions: []corev1.ComponentCondition{healthy}}
}
