package flowschema

import (
	"testing"
	"testing/synctest"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/reconciletest"
)

func TestDangling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := reconciletest.New(t)
		schema := &flowcontrolv1.FlowSchema{ObjectMeta: metav1.ObjectMeta{Name: "s"}}
		schema.Spec.PriorityLevelConfiguration.Name = "l"
		reconciletest.Add(w, schema)
		w.Run(New())
		look := func(status flowcontrolv1.ConditionStatus, reason string) {
			t.Helper()
			w.Settle()
			got, err := w.Client.FlowcontrolV1().FlowSchemas().Get(t.Context(), "s", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if c := got.Status.Conditions; len(c) != 1 || c[0].Type != "Dangling" || c[0].Status != status || c[0].Reason != reason {
				t.Errorf("%+v, want %s, %s", c, status, reason)
			}
		}
		look("True", "NotFound")
		levels := w.Client.FlowcontrolV1().PriorityLevelConfigurations()
		if _, err := levels.Create(t.Context(), &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "l"}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		look("False", "Found")
		w.Writes()
		w.Settle()
		if writes := w.Writes(); len(writes) > 0 {
			t.Errorf("an unchanged world was written to: %v", writes)
		}
		if err := levels.Delete(t.Context(), "l", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		look("True", "NotFound")
	})
}
