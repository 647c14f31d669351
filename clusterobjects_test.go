package setpoint

import (
	"testing"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
)

// writes counts what changed since the last call.
func writes(client *fake.Clientset) (created, updated int) {
	for _, action := range client.Actions() {
		switch action.(type) {
		case clienttesting.CreateActionImpl:
			created++
		case clienttesting.UpdateActionImpl:
			updated++
		}
	}
	client.ClearActions()
	return created, updated
}

func ensureAnd(t *testing.T, client *fake.Clientset, wantCreated, wantUpdated int, what string) {
	t.Helper()
	client.ClearActions()
	if err := ensureClusterObjects(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if created, updated := writes(client); created != wantCreated || updated != wantUpdated {
		t.Errorf("%s: %d created, %d updated, want %d and %d", what, created, updated, wantCreated, wantUpdated)
	}
}

// 2 priority classes, 2 + 6 levels, 2 + 9 schemas, 1 range.
const clusterObjects = 22

func TestClusterObjectsAreMadeOnce(t *testing.T) {
	client := fake.NewClientset()
	ensureAnd(t, client, clusterObjects, 1, "empty cluster") // the range's status
	ensureAnd(t, client, 0, 0, "unchanged cluster")
	for _, remove := range []error{
		client.SchedulingV1().PriorityClasses().Delete(t.Context(), "system-node-critical", metav1.DeleteOptions{}),
		client.FlowcontrolV1().FlowSchemas().Delete(t.Context(), "probes", metav1.DeleteOptions{}),
	} {
		if remove != nil {
			t.Fatal(remove)
		}
	}
	ensureAnd(t, client, 2, 0, "two deleted")
}

func TestMaintainedObjectsAreRestored(t *testing.T) {
	for name, test := range map[string]struct {
		annotation  string
		generation  int64
		wantUpdated int
	}{
		"maintained":       {"true", 5, 2},
		"left alone":       {"false", 1, 0},
		"never touched":    {"", 1, 2},
		"touched":          {"", 2, 0},
		"touched, unclear": {"perhaps", 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			meta := metav1.ObjectMeta{Generation: test.generation, Annotations: map[string]string{flowcontrolv1.AutoUpdateAnnotationKey: test.annotation}}
			schema, level := &flowcontrolv1.FlowSchema{ObjectMeta: meta}, &flowcontrolv1.PriorityLevelConfiguration{ObjectMeta: meta}
			exempt := level.DeepCopy()
			schema.Name, level.Name, exempt.Name = "probes", "system", flowcontrolv1.PriorityLevelConfigurationNameExempt
			client := fake.NewClientset([]runtime.Object{schema, level, exempt}...)
			ensureAnd(t, client, clusterObjects-3, test.wantUpdated+1, "changed by hand") // the status of the range
		})
	}
}
