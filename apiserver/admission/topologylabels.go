package admission

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// podTopologyLabels tells a pod, by its labels, in which zone and region its node is.
type podTopologyLabels struct {
	onCreate
	nodes objects[*corev1.Node]
}

func newPodTopologyLabels(store *storage.Store) podTopologyLabels {
	return podTopologyLabels{nodes: objectsOf[*corev1.Node](store, corev1.SchemeGroupVersion.WithResource("nodes"))}
}

// Admit implements admission.MutationInterface.
func (p podTopologyLabels) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetResource().GroupResource() != podsResource {
		return nil
	}
	switch o := a.GetObject().(type) {
	case *corev1.Pod:
		return p.label(ctx, &o.ObjectMeta, o.Spec.NodeName)
	case *corev1.Binding:
		if o.Target.Kind == "Node" {
			return p.label(ctx, &o.ObjectMeta, o.Target.Name)
		}
	}
	return nil
}

func (p podTopologyLabels) label(ctx context.Context, m *metav1.ObjectMeta, name string) error {
	if name == "" {
		return nil
	}
	node, found, err := p.nodes.get(ctx, "", name)
	if err != nil || !found {
		return err
	}
	for _, key := range []string{corev1.LabelTopologyZone, corev1.LabelTopologyRegion} {
		value, known := node.Labels[key]
		if _, said := m.Labels[key]; known && !said {
			metav1.SetMetaDataLabel(m, key, value)
		}
	}
	return nil
}
