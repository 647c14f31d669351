package agent

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/setpoint-io/setpoint/agent/volumes/csinode"
)

// TestANodeTellsWhichPortsItsPodsHave, while they run, and those of Gateways.
func TestANodeTellsWhichPortsItsPodsHave(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := fake.NewClientset()
		bound := informers.NewSharedInformerFactory(client, 0)
		a := &agent{changed: make(chan struct{}, 1)}
		a.csiNode = csinode.New(nil, "n", nil)
		a.followPorts(bound)
		ctx, cancel := context.WithCancel(t.Context())
		defer bound.Shutdown()
		defer cancel()
		bound.StartWithContext(ctx)
		tells := func(when, want string) {
			t.Helper()
			synctest.Wait()
			if got := a.reservedAnnotation(); !strings.Contains(got, want) {
				t.Errorf("%s: %s", when, got)
			}
		}
		pods := client.CoreV1().Pods("ns")
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{Containers: []corev1.Container{
			{Ports: []corev1.ContainerPort{{HostPort: 8600, Protocol: corev1.ProtocolTCP}, {HostPort: 53, Protocol: corev1.ProtocolUDP}}},
		}}}
		if _, err := pods.Create(ctx, pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		tells("a pod", `"pods":["53/UDP","8600/TCP"]`)
		if len(a.changed) == 0 {
			t.Error("nobody looks at the Node")
		}
		opened := []int(nil)
		a.gatewaysOpened(func(ports []int) { opened = ports })([]int{8700, 443})
		tells("a Gateway", `"gateways":[443,8700]`)
		if len(opened) != 2 {
			t.Errorf("handed on: %v", opened)
		}
		pod.Status.Phase = corev1.PodSucceeded
		if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		tells("it has ended", `{"gossip":0,"gateways":[443,8700]}`)
	})
}
