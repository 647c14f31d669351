package events

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// groupEvents is events.k8s.io/v1: the same events under other field names.
func groupEvents() resource.Kind[*eventsv1.Event] {
	return resource.Kind[*eventsv1.Event]{
		GroupVersionKind:    eventsv1.SchemeGroupVersion.WithKind("Event"),
		Plural:              "events",
		ShortNames:          []string{"ev"},
		New:                 func() *eventsv1.Event { return &eventsv1.Event{} },
		NewList:             func() runtime.Object { return &eventsv1.EventList{} },
		Validate:            validateGroupEvent,
		ValidateUpdate:      validateGroupEventUpdate,
		AllowCreateOnUpdate: true,
		Columns:             eventColumns(storedEvent),
		NoDependents:        true,
		Fields:              groupEventFields,
		StoredAs:            schema.GroupResource{Resource: "events"},
		ToStored:            func(event *eventsv1.Event) resource.Object { return storedEvent(event) },
		FromStored:          func(stored resource.Object) *eventsv1.Event { return groupEvent(stored.(*corev1.Event)) },
	}
}

// storedEvent is the event as core/v1 has it; it shares memory with the argument.
func storedEvent(e *eventsv1.Event) *corev1.Event {
	stored := &corev1.Event{
		ObjectMeta:          e.ObjectMeta,
		InvolvedObject:      e.Regarding,
		Related:             e.Related,
		Reason:              e.Reason,
		Message:             e.Note,
		Type:                e.Type,
		Action:              e.Action,
		EventTime:           e.EventTime,
		ReportingController: e.ReportingController,
		ReportingInstance:   e.ReportingInstance,
		Source:              e.DeprecatedSource,
		FirstTimestamp:      e.DeprecatedFirstTimestamp,
		LastTimestamp:       e.DeprecatedLastTimestamp,
		Count:               e.DeprecatedCount,
	}
	if e.Series != nil {
		stored.Series = &corev1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return stored
}

// groupEvent is the inverse of storedEvent.
func groupEvent(e *corev1.Event) *eventsv1.Event {
	event := &eventsv1.Event{
		ObjectMeta:               e.ObjectMeta,
		Regarding:                e.InvolvedObject,
		Related:                  e.Related,
		Reason:                   e.Reason,
		Note:                     e.Message,
		Type:                     e.Type,
		Action:                   e.Action,
		EventTime:                e.EventTime,
		ReportingController:      e.ReportingController,
		ReportingInstance:        e.ReportingInstance,
		DeprecatedSource:         e.Source,
		DeprecatedFirstTimestamp: e.FirstTimestamp,
		DeprecatedLastTimestamp:  e.LastTimestamp,
		DeprecatedCount:          e.Count,
	}
	if e.Series != nil {
		event.Series = &eventsv1.EventSeries{Count: e.Series.Count, LastObservedTime: e.Series.LastObservedTime}
	}
	return event
}

func groupEventFields(e *eventsv1.Event) fields.Set {
	return fields.Set{
		"regarding.kind":            e.Regarding.Kind,
		"regarding.namespace":       e.Regarding.Namespace,
		"regarding.name":            e.Regarding.Name,
		"regarding.uid":             string(e.Regarding.UID),
		"regarding.apiVersion":      e.Regarding.APIVersion,
		"regarding.resourceVersion": e.Regarding.ResourceVersion,
		"regarding.fieldPath":       e.Regarding.FieldPath,
		"reason":                    e.Reason,
		"reportingController":       e.ReportingController,
		"type":                      e.Type,
	}
}

// validateGroupEvent asks for everything new, and that nothing deprecated is set.
func validateGroupEvent(e *eventsv1.Event) field.ErrorList {
	errs := validateEvent(storedEvent(e), "reportingController")
	errs = append(errs, validateSeries(e.Series)...)
	if e.EventTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("eventTime"), ""))
	}
	if e.Type != corev1.EventTypeNormal && e.Type != corev1.EventTypeWarning {
		errs = append(errs, field.Invalid(field.NewPath("type"), "", fmt.Sprintf("has invalid value: %v", e.Type)))
	}
	for _, deprecated := range []struct {
		set  bool
		name string
	}{
		{!e.DeprecatedFirstTimestamp.IsZero(), "firstTimestamp"},
		{!e.DeprecatedLastTimestamp.IsZero(), "lastTimestamp"},
		{e.DeprecatedCount != 0, "count"},
		{e.DeprecatedSource != (corev1.EventSource{}), "source"},
	} {
		if deprecated.set {
			errs = append(errs, field.Invalid(field.NewPath(deprecated.name), "", "needs to be unset"))
		}
	}
	return errs
}

func validateSeries(series *eventsv1.EventSeries) field.ErrorList {
	if series == nil {
		return nil
	}
	var errs field.ErrorList
	if series.Count < 2 {
		errs = append(errs, field.Invalid(field.NewPath("series.count"), "", "should be at least 2"))
	}
	if series.LastObservedTime.IsZero() {
		errs = append(errs, field.Required(field.NewPath("series.lastObservedTime"), ""))
	}
	return errs
}

// validateGroupEventUpdate: only the series of an event goes on.
func validateGroupEventUpdate(e, old *eventsv1.Event) field.ErrorList {
	errs := validateEvent(storedEvent(e), "reportingController")
	errs = append(errs, validateSeries(e.Series)...)
	for _, part := range []struct {
		name     string
		now, was any
	}{
		{"involvedObject", e.Regarding, old.Regarding},
		{"reason", e.Reason, old.Reason},
		{"message", e.Note, old.Note},
		{"source", e.DeprecatedSource, old.DeprecatedSource},
		{"firstTimestamp", e.DeprecatedFirstTimestamp, old.DeprecatedFirstTimestamp},
		{"lastTimestamp", e.DeprecatedLastTimestamp, old.DeprecatedLastTimestamp},
		{"count", e.DeprecatedCount, old.DeprecatedCount},
		{"type", e.Type, old.Type},
		{"eventTime", e.EventTime.UnixMicro(), old.EventTime.UnixMicro()},
		{"action", e.Action, old.Action},
		{"related", e.Related, old.Related},
		{"reportingController", e.ReportingController, old.ReportingController},
		{"reportingInstance", e.ReportingInstance, old.ReportingInstance},
	} {
		errs = append(errs, validation.ValidateImmutableField(part.now, part.was, field.NewPath(part.name))...)
	}
	return errs
}
