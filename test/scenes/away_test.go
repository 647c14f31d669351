package scenes

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint"
)

// TestLoopsThatWereAway: a hundred changes are made while no loop runs; the loops that start then see the last state only, and make it
// true.
func TestLoopsThatWereAway(t *testing.T) {
	dir := t.TempDir()
	cluster, err := setpoint.Start(t.Context(), setpoint.Config{DataDir: dir, APIOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	stop := func() {
		if err := cluster.Stop(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cluster.Ready(t.Context()); err != nil {
		stop()
		t.Fatal(err)
	}
	s := &scene{T: t, namespace: "default", client: clientOf(t, cluster)}
	s.see("the namespace", func(ctx context.Context) (string, bool) {
		_, err := s.client.CoreV1().Namespaces().Get(ctx, "default", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil
	})
	for i := range 10 {
		name := fmt.Sprintf("shop-%d", i)
		s.deploy(name, 1, nil)
		for n := range 9 {
			s.change(name, func(d *appsv1.Deployment) {
				*d.Spec.Replicas = int32(n % 4)
				d.Spec.Template.Spec.Containers[0].Image = fmt.Sprintf("shop:v%d", n)
			})
		}
	}
	stop()
	s.client = started(t, setpoint.Config{DataDir: dir, SimulatedNodes: nodes})
	for i := range 10 {
		s.seeDeployment(fmt.Sprintf("shop-%d", i), "as it was left", func(d *appsv1.Deployment) bool {
			return *d.Spec.Replicas == 0 && complete(d)
		})
	}
	s.change("shop-0", func(d *appsv1.Deployment) { *d.Spec.Replicas = 3 })
	s.seeDeployment("shop-0", "complete", complete)
	sets, err := s.client.AppsV1().ReplicaSets("default").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(sets.Items) != 10 {
		t.Errorf("%d ReplicaSets, want one for each Deployment: versions in between were never needed; %v", len(sets.Items), err)
	}
}
