package setpoint_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	migrationv1 "k8s.io/api/storagemigration/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint"
)

// TestUpkeep: controllers that keep a cluster's own objects do so over the real API, whose monitors know little of each object.
func TestUpkeep(t *testing.T) {
	_, access := started(t, setpoint.Config{})
	client := kubernetes.NewForConfigOrDie(access)
	until(t, "the trust bundle of the API servers", func() bool {
		list, err := client.CertificatesV1().ClusterTrustBundles().List(t.Context(), metav1.ListOptions{FieldSelector: "spec.signerName=kubernetes.io/kube-apiserver-serving"})
		return err == nil && len(list.Items) == 1
	})
	t.Run("a range in use stays", func(t *testing.T) { rangeInUseStays(t, client) })
	t.Run("a migration ends", func(t *testing.T) {
		m := &migrationv1.StorageVersionMigration{ObjectMeta: metav1.ObjectMeta{Name: "m"}}
		m.Spec.Resource.Resource = "secrets"
		if _, err := client.StoragemigrationV1().StorageVersionMigrations().Create(t.Context(), m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		until(t, "its end", func() bool {
			m, err := client.StoragemigrationV1().StorageVersionMigrations().Get(t.Context(), "m", metav1.GetOptions{})
			return err == nil && meta.IsStatusConditionTrue(m.Status.Conditions, "Succeeded") && meta.IsStatusConditionFalse(m.Status.Conditions, "Running")
		})
	})
}

func rangeInUseStays(t *testing.T, client kubernetes.Interface) {
	t.Helper()
	ranges := client.NetworkingV1().ServiceCIDRs()
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.200.0.0/28"}}}
	if _, err := ranges.Create(t.Context(), more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	ready := func(want metav1.ConditionStatus) func() bool {
		return func() bool {
			c, err := ranges.Get(t.Context(), "more", metav1.GetOptions{})
			return err == nil && len(c.Finalizers) == 1 && meta.IsStatusConditionPresentAndEqual(c.Status.Conditions, networkingv1.ServiceCIDRConditionReady, want)
		}
	}
	until(t, "the range to be ready", ready(metav1.ConditionTrue))
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "s"}, Spec: corev1.ServiceSpec{ClusterIP: "10.200.0.5", Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := client.CoreV1().Services("default").Create(t.Context(), service, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := ranges.Delete(t.Context(), "more", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "the range to wait", ready(metav1.ConditionFalse))
}
