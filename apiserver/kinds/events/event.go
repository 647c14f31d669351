package events

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/kinds/rule"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Limits of the texts of an event with a time of its own, in bytes.
const (
	eventWordMax = 128
	eventNoteMax = 1024
)

func events() resource.Kind[*corev1.Event] {
	return resource.Kind[*corev1.Event]{
		GroupVersionKind:    corev1.SchemeGroupVersion.WithKind("Event"),
		Plural:              "events",
		ShortNames:          []string{"ev"},
		New:                 func() *corev1.Event { return &corev1.Event{} },
		NewList:             func() runtime.Object { return &corev1.EventList{} },
		NoDependents:        true,
		ValidateName:        path.ValidatePathSegmentName,
		Validate:            func(event *corev1.Event) field.ErrorList { return validateEvent(event, "reportingComponent") },
		ValidateUpdate:      func(event, _ *corev1.Event) field.ErrorList { return validateEvent(event, "reportingComponent") },
		AllowCreateOnUpdate: true,
		Columns:             eventColumns(func(event *corev1.Event) *corev1.Event { return event }),
		Fields:              eventFields,
	}
}

func eventFields(event *corev1.Event) fields.Set {
	source := event.Source.Component
	rule.Default(&source, event.ReportingController)
	return fields.Set{
		"involvedObject.kind":            event.InvolvedObject.Kind,
		"involvedObject.namespace":       event.InvolvedObject.Namespace,
		"involvedObject.name":            event.InvolvedObject.Name,
		"involvedObject.uid":             string(event.InvolvedObject.UID),
		"involvedObject.apiVersion":      event.InvolvedObject.APIVersion,
		"involvedObject.resourceVersion": event.InvolvedObject.ResourceVersion,
		"involvedObject.fieldPath":       event.InvolvedObject.FieldPath,
		"reason":                         event.Reason,
		"reportingComponent":             event.ReportingController,
		"source":                         source,
		"type":                           event.Type,
	}
}

// eventColumns are the same for both versions of events: as reads the stored form.
func eventColumns[T resource.Object](as func(T) *corev1.Event) []resource.Column[T] {
	doc := corev1.Event{}.SwaggerDoc()
	text := func(name, key string, priority int32, cell func(*corev1.Event) string) resource.Column[T] {
		return column.Text(name, doc[key], priority, func(obj T) string { return cell(as(obj)) })
	}
	since := func(name, key string, priority int32, when func(*corev1.Event) time.Time) resource.Column[T] {
		return resource.Column[T]{
			Name: name, Type: "string", Description: doc[key], Priority: priority,
			Cell: func(obj T, now time.Time) any { return column.Since(when(as(obj)), now) },
		}
	}
	count := column.Int("Count", doc["count"], func(obj T) int64 { return eventCount(as(obj)) })
	count.Type, count.Priority = "string", 1
	name := column.Name[T]()
	name.Priority = 1
	return []resource.Column[T]{
		since("Last Seen", "lastTimestamp", 0, eventLast),
		text("Type", "type", 0, func(e *corev1.Event) string { return e.Type }),
		text("Reason", "reason", 0, func(e *corev1.Event) string { return e.Reason }),
		text("Object", "involvedObject", 0, eventTarget),
		text("Subobject", "involvedObject", 1, func(e *corev1.Event) string { return e.InvolvedObject.FieldPath }),
		text("Source", "source", 1, eventSource),
		text("Message", "message", 0, func(e *corev1.Event) string { return strings.TrimSpace(e.Message) }),
		since("First Seen", "firstTimestamp", 1, eventFirst),
		count,
		name,
	}
}

func eventFirst(e *corev1.Event) time.Time {
	if e.FirstTimestamp.IsZero() {
		return e.EventTime.Time
	}
	return e.FirstTimestamp.Time
}

func eventLast(e *corev1.Event) time.Time {
	switch {
	case e.Series != nil:
		return e.Series.LastObservedTime.Time
	case e.LastTimestamp.IsZero():
		return eventFirst(e)
	}
	return e.LastTimestamp.Time
}

// eventCount: an event without a count happened once.
func eventCount(e *corev1.Event) int64 {
	switch {
	case e.Series != nil:
		return int64(e.Series.Count)
	case e.Count == 0:
		return 1
	}
	return int64(e.Count)
}

func eventTarget(e *corev1.Event) string {
	kind := strings.ToLower(e.InvolvedObject.Kind)
	if e.InvolvedObject.Name == "" {
		return kind
	}
	return kind + "/" + e.InvolvedObject.Name
}

func eventSource(e *corev1.Event) string {
	component, instance := e.Source.Component, e.Source.Host
	if component == "" {
		component, instance = e.ReportingController, e.ReportingInstance
	}
	if instance == "" {
		return component
	}
	return component + ", " + instance
}

// validateEvent judges what every event must satisfy; those with a time of their
// own come from newer clients and must be complete.
func validateEvent(event *corev1.Event, reporter string) field.ErrorList {
	errs := validateEventNamespace(event)
	if !event.EventTime.IsZero() {
		errs = append(errs, validateReporter(event, reporter)...)
		errs = append(errs, requiredWord(event.Action, field.NewPath("action"))...)
		errs = append(errs, requiredWord(event.Reason, field.NewPath("reason"))...)
		if len(event.Message) > eventNoteMax {
			errs = append(errs, field.Invalid(field.NewPath("message"), "", "can have at most 1024 characters"))
		}
	}
	errs = append(errs, rule.Subdomain(event.Namespace, field.NewPath("namespace"))...)
	return errs
}

// validateEventNamespace: an event lives beside its object, or, from newer clients, where
// they may write; those about objects without a namespace live in default, or in
// kube-system for newer clients.
func validateEventNamespace(event *corev1.Event) field.ErrorList {
	namespace, isNew := event.InvolvedObject.Namespace, !event.EventTime.IsZero()
	switch {
	case namespace == event.Namespace, namespace != "" && isNew:
		return nil
	case namespace == "" && (event.Namespace == metav1.NamespaceDefault || isNew && event.Namespace == metav1.NamespaceSystem):
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("involvedObject", "namespace"), namespace, "does not match event.namespace")}
}

func validateReporter(event *corev1.Event, reporter string) field.ErrorList {
	var errs field.ErrorList
	if event.ReportingController == "" {
		errs = append(errs, field.Required(field.NewPath(reporter), ""))
	}
	errs = append(errs, rule.QualifiedName(event.ReportingController, field.NewPath(reporter))...)
	return append(errs, requiredWord(event.ReportingInstance, field.NewPath("reportingInstance"))...)
}

func requiredWord(word string, path *field.Path) field.ErrorList {
	if word == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if len(word) > eventWordMax {
		return field.ErrorList{field.Invalid(path, "", "can have at most 128 characters")}
	}
	return nil
}
