package column

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Unknown stands for a time that is not set, None for an empty value, Unset for a
// field that has none.
const (
	Unknown = "<unknown>"
	None    = "<none>"
	Unset   = "<unset>"
)

// Name is the first column of nearly every table.
func Name[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Name", Type: "string", Format: "name",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		Cell:        func(obj T, _ time.Time) any { return obj.GetName() },
	}
}

// Age is the time since creation.
func Age[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Age", Type: "string",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell:        func(obj T, now time.Time) any { return Since(obj.GetCreationTimestamp().Time, now) },
	}
}

// Created is the time of creation, which tables without an age show.
func Created[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Created At", Type: "date",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell:        func(obj T, _ time.Time) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}
}

// CreatedAt is the time of creation, for kinds without columns of their own.
func CreatedAt[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Created At", Type: "date",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell:        func(obj T, _ time.Time) any { return obj.GetCreationTimestamp().UTC().Format(time.RFC3339) },
	}
}

// Text is a column of strings; priority 1 is shown with -o wide only.
func Text[T resource.Object](name, description string, priority int32, cell func(T) string) resource.Column[T] {
	return resource.Column[T]{
		Name: name, Type: "string", Description: description, Priority: priority,
		Cell: func(obj T, _ time.Time) any { return cell(obj) },
	}
}

// Int is a column of numbers.
func Int[T resource.Object](name, description string, cell func(T) int64) resource.Column[T] {
	return resource.Column[T]{
		Name: name, Type: "integer", Description: description,
		Cell: func(obj T, _ time.Time) any { return cell(obj) },
	}
}

// Count is a column of numbers that upstream calls a string.
func Count[T resource.Object](name, description string, cell func(T) int64) resource.Column[T] {
	c := Int(name, description, cell)
	c.Type = "string"
	return c
}

// Bool is a column of true and false.
func Bool[T resource.Object](name, description string, cell func(T) bool) resource.Column[T] {
	return resource.Column[T]{
		Name: name, Type: "boolean", Description: description,
		Cell: func(obj T, _ time.Time) any { return cell(obj) },
	}
}

// Since is the time since t in the words of kubectl, such as 5m or 3d4h.
func Since(t, now time.Time) string {
	if t.IsZero() {
		return Unknown
	}
	return duration.HumanDuration(now.Sub(t))
}

// OrNone is the text, or None where there is none.
func OrNone(text string) string {
	if text == "" {
		return None
	}
	return text
}

// OrUnknown is the text, or Unknown where there is none.
func OrUnknown(text string) string {
	if text == "" {
		return Unknown
	}
	return text
}
