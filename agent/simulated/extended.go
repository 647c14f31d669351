package simulated

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// passOn lets pods have the resources that somebody has written into the Node's capacity, such as example.com/dongle, as a kubelet does.
func (f *fleet) passOn(ctx context.Context, got *corev1.Node) error {
	want := got.Status.Allocatable.DeepCopy()
	for name := range want {
		if _, there := got.Status.Capacity[name]; extended(name) && !there {
			delete(want, name)
		}
	}
	for name, amount := range got.Status.Capacity {
		if extended(name) && want != nil {
			want[name] = amount
		}
	}
	if equality.Semantic.DeepEqual(want, got.Status.Allocatable) {
		return nil
	}
	next := got.DeepCopy()
	next.Status.Allocatable = want
	_, err := f.Client.CoreV1().Nodes().UpdateStatus(ctx, next, metav1.UpdateOptions{})
	return err
}

// extended: the resource is in a domain other than Kubernetes'.
func extended(name corev1.ResourceName) bool {
	return strings.Contains(string(name), "/") && !strings.Contains(string(name), corev1.ResourceDefaultNamespacePrefix)
}
