package core

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

func TestNamespaceIsHeldByItsFinalizer(t *testing.T) {
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	prepareNamespaceCreate(ns)
	prepareNamespaceCreate(ns)
	if diff := cmp.Diff([]corev1.FinalizerName{"kubernetes"}, ns.Spec.Finalizers); diff != "" {
		t.Error(diff)
	}
	if ns.Labels[corev1.LabelMetadataName] != "shop" || ns.Status.Phase != corev1.NamespaceActive {
		t.Errorf("namespace = %+v", ns)
	}
	updated := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
	prepareNamespaceUpdate(updated, ns)
	if finalizing := namespaces().Finalizing; !finalizing(updated) || finalizing(&corev1.Namespace{}) {
		t.Error("an update must keep the finalizer")
	}
}

func TestNamespaceStatusFollowsDeletion(t *testing.T) {
	deleted := metav1.ObjectMeta{Name: "a", DeletionTimestamp: &metav1.Time{Time: kindstest.Now}}
	for name, test := range map[string]struct {
		ns   corev1.Namespace
		want []string
	}{
		"active":              {corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "Active"}}, nil},
		"terminating":         {corev1.Namespace{ObjectMeta: deleted, Status: corev1.NamespaceStatus{Phase: "Terminating"}}, nil},
		"terminating, active": {corev1.Namespace{ObjectMeta: deleted, Status: corev1.NamespaceStatus{Phase: "Active"}}, []string{"status.phase: Invalid value: \"Active\": may only be 'Terminating' if `deletionTimestamp` is not empty"}},
		"early":               {corev1.Namespace{Status: corev1.NamespaceStatus{Phase: "Terminating"}}, []string{"status.phase: Invalid value: \"Terminating\": may only be 'Active' if `deletionTimestamp` is empty"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, kindstest.Messages(validateNamespaceStatus(&test.ns, nil))); diff != "" {
				t.Error("(-want +got):\n", diff)
			}
		})
	}
}
