package workload

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/column"
	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Columns are those that -o wide adds for what makes pods from a template.
func Columns[T resource.Object](template func(T) *corev1.PodTemplateSpec) []resource.Column[T] {
	return []resource.Column[T]{
		column.Text("Containers", "Names of each container in the template.", 1, func(obj T) string {
			return containerNames(&template(obj).Spec)
		}),
		column.Text("Images", "Images referenced by each container in the template.", 1, func(obj T) string {
			return containerImages(&template(obj).Spec)
		}),
	}
}

// SelectorCell prints a selector for a table.
func SelectorCell(selector *metav1.LabelSelector) string {
	return column.OrNone(metav1.FormatLabelSelector(selector))
}

// containerNames and containerImages list the containers of a template.
func containerNames(spec *corev1.PodSpec) string {
	names := make([]string, len(spec.Containers))
	for i := range spec.Containers {
		names[i] = spec.Containers[i].Name
	}
	return strings.Join(names, ",")
}

func containerImages(spec *corev1.PodSpec) string {
	images := make([]string, len(spec.Containers))
	for i := range spec.Containers {
		images[i] = spec.Containers[i].Image
	}
	return strings.Join(images, ",")
}
