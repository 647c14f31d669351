package testclient

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/kubernetes"
)

// Events are the Events about an object, oldest first; of the namespace if target is "". The administrator lists them.
func (c *Client) Events(ctx context.Context, target string) ([]corev1.Event, error) {
	namespace, options := c.Namespace, metav1.ListOptions{}
	if target != "" {
		object, err := c.Get(ctx, target)
		if err != nil {
			return nil, err
		}
		if object == nil {
			return nil, fmt.Errorf("Events: there is no %s", target)
		}
		options.FieldSelector = fields.OneTermEqualSelector("involvedObject.uid", string(object.GetUID())).String()
		if object.GetNamespace() == "" {
			namespace = metav1.NamespaceDefault
		}
	}
	client, err := kubernetes.NewForConfig(c.Admin)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Events(namespace).List(ctx, options)
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}
