package core

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/kinds/kindstest"
)

// TestVolumeStatusChangesMetadata: upstream keeps only the spec in an update of the status.
func TestVolumeStatusChangesMetadata(t *testing.T) {
	old := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "v"}, Spec: corev1.PersistentVolumeSpec{StorageClassName: "a"}}
	pv := old.DeepCopy()
	pv.Labels, pv.Spec.StorageClassName = map[string]string{"l": "new"}, "b"
	prepareVolumeStatus(pv, old, kindstest.Now)
	if pv.Labels["l"] != "new" || pv.Spec.StorageClassName != "a" {
		t.Errorf("%+v", pv)
	}
}
