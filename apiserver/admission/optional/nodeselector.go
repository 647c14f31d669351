package optional

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apiserver/pkg/admission"
	"sigs.k8s.io/yaml"
)

const (
	// nodeSelectorAnnotation of a namespace is what its pods' node selectors begin with.
	nodeSelectorAnnotation = "scheduler.alpha.kubernetes.io/node-selector"
	// clusterDefault is the name under which the configuration has the selector of namespaces without the annotation.
	clusterDefault = "clusterDefaultNodeSelector"
)

var (
	errSelectorConflict  = errors.New("pod node label selector conflicts with its namespace node label selector")
	errSelectorForbidden = errors.New("pod node label selector labels conflict with its namespace whitelist")
)

// nodeSelector keeps the pods of a namespace on the nodes that its annotation selects, or the configuration.
type nodeSelector struct {
	onCreate
	config Config
	// configured are the default, and by namespace which labels a pod may name at most.
	configured map[string]labels.Set
}

func newNodeSelector(c Config) (admission.Interface, error) {
	var file struct {
		Config map[string]string `json:"podNodeSelectorPluginConfig"`
	}
	if err := yaml.UnmarshalStrict(c.Configuration("PodNodeSelector"), &file); err != nil {
		return nil, err
	}
	n := nodeSelector{config: c, configured: map[string]labels.Set{}}
	for name, text := range file.Config {
		set, err := labels.ConvertSelectorToLabelsMap(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		n.configured[name] = set
	}
	return n, nil
}

// Admit implements admission.MutationInterface.
func (n nodeSelector) Admit(ctx context.Context, a admission.Attributes, o admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	wanted, err := n.ofNamespace(ctx, a)
	if err != nil {
		return err
	}
	if labels.Conflicts(wanted, pod.Spec.NodeSelector) {
		return admission.NewForbidden(a, errSelectorConflict)
	}
	pod.Spec.NodeSelector = labels.Merge(wanted, pod.Spec.NodeSelector)
	return n.Validate(ctx, a, o)
}

// Validate implements admission.ValidationInterface.
func (n nodeSelector) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod := podOf(a)
	if pod == nil {
		return nil
	}
	wanted, err := n.ofNamespace(ctx, a)
	switch allowed := n.configured[a.GetNamespace()]; {
	case err != nil:
		return err
	case labels.Conflicts(wanted, pod.Spec.NodeSelector):
		return admission.NewForbidden(a, errSelectorConflict)
	case !within(pod.Spec.NodeSelector, allowed):
		return admission.NewForbidden(a, errSelectorForbidden)
	}
	return nil
}

// ofNamespace is what the selectors of a namespace's pods begin with.
func (n nodeSelector) ofNamespace(ctx context.Context, a admission.Attributes) (labels.Set, error) {
	namespace, err := n.config.Namespace(ctx, a.GetNamespace())
	if err != nil {
		return nil, err
	}
	text, annotated := namespace.Annotations[nodeSelectorAnnotation]
	if !annotated {
		return n.configured[clusterDefault], nil
	}
	set, err := labels.ConvertSelectorToLabelsMap(text)
	if err != nil {
		return nil, admission.NewForbidden(a, fmt.Errorf("annotation %s of the namespace: %w", nodeSelectorAnnotation, err))
	}
	return set, nil
}

// within reports whether all labels are among those that are allowed; an empty set allows all.
func within(set, allowed labels.Set) bool {
	if len(allowed) == 0 {
		return true
	}
	for key, value := range set {
		if v, ok := allowed[key]; !ok || v != value {
			return false
		}
	}
	return true
}
