package machines

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/setpoint-io/setpoint/internal/trust"
)

// deleteNode deletes the Node of a machine that lives. Its agent, which may do nothing else then, makes it again, for the key that it had.
func (c *Cluster) deleteNode(t *testing.T) {
	name := c.Machines[0].Node
	get := func() (*corev1.Node, error) {
		return Ask(c, func(client kubernetes.Interface) (*corev1.Node, error) {
			return client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		})
	}
	before, err := get()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Ask(c, func(client kubernetes.Interface) (struct{}, error) {
		return struct{}{}, client.CoreV1().Nodes().Delete(t.Context(), name, metav1.DeleteOptions{})
	})
	if err != nil {
		t.Fatal(err)
	}
	took := Until(t, patience, func(context.Context) string {
		now, err := get()
		if err != nil || now.UID == before.UID {
			return fmt.Sprintf("%s is not there again: %v", name, err)
		}
		if key := now.Annotations[trust.NodeKeyAnnotation]; key == "" || key != before.Annotations[trust.NodeKeyAnnotation] {
			t.Fatalf("%s belongs to the key %q, and not to %q", name, key, before.Annotations[trust.NodeKeyAnnotation])
		}
		return ""
	})
	Until(t, patience, c.nodesNotReady)
	t.Logf("%s was there again after %v", name, took)
	c.deploy(t, "again", 3) // one on each
}
