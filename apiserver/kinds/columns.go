package kinds

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// unknownCell stands for a time that is not set, noneCell for an empty value.
const (
	unknownCell = "<unknown>"
	noneCell    = "<none>"
)

func nameColumn[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Name", Type: "string", Format: "name",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["name"],
		Cell:        func(obj T, _ time.Time) any { return obj.GetName() },
	}
}

func ageColumn[T resource.Object]() resource.Column[T] {
	return resource.Column[T]{
		Name: "Age", Type: "string",
		Description: metav1.ObjectMeta{}.SwaggerDoc()["creationTimestamp"],
		Cell:        func(obj T, now time.Time) any { return age(obj.GetCreationTimestamp().Time, now) },
	}
}

// textColumn is a column of strings; priority 1 is shown with -o wide only.
func textColumn[T resource.Object](name, description string, priority int32, cell func(T) string) resource.Column[T] {
	return resource.Column[T]{
		Name: name, Type: "string", Description: description, Priority: priority,
		Cell: func(obj T, _ time.Time) any { return cell(obj) },
	}
}

func intColumn[T resource.Object](name, description string, cell func(T) int64) resource.Column[T] {
	return resource.Column[T]{
		Name: name, Type: "integer", Description: description,
		Cell: func(obj T, _ time.Time) any { return cell(obj) },
	}
}

// age is the time since t in the words of kubectl, such as 5m or 3d4h.
func age(t, now time.Time) string {
	if t.IsZero() {
		return unknownCell
	}
	return duration.HumanDuration(now.Sub(t))
}

func orNone(text string) string {
	if text == "" {
		return noneCell
	}
	return text
}
