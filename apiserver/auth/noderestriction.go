package auth

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	kubeletapis "k8s.io/kubelet/pkg/apis"

	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
)

// restrictedLabels are labels by which administrators set nodes apart: no node gives itself one.
const restrictedLabels = "node-restriction.kubernetes.io/"

// NodeRestriction judges what nodes write by the objects themselves, which the authorizer
// cannot see: that a new Node or Lease bears the node's name, that a pod whose status it
// reports or which it deletes is bound to it, and that it changes of its own Node only what is
// its to say. It is a plugin for the admission chain; the zero value is ready.
type NodeRestriction struct{}

var (
	_ admission.MutationInterface   = NodeRestriction{}
	_ admission.ValidationInterface = NodeRestriction{}
)

// Handles implements admission.Interface.
func (NodeRestriction) Handles(operation admission.Operation) bool {
	return operation != admission.Connect
}

// Admit implements admission.MutationInterface; it changes nothing.
func (NodeRestriction) Admit(context.Context, admission.Attributes, admission.ObjectInterfaces) error {
	return nil
}

// Validate implements admission.ValidationInterface.
func (NodeRestriction) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	who := a.GetUserInfo()
	if who == nil || !slices.Contains(who.GetGroups(), pki.GroupNodes) {
		return nil
	}
	node, ok := pki.NodeOfUser(who.GetName())
	if !ok {
		return nil // the authorizer has refused it
	}
	if err := judgeNode(node, a); err != nil {
		return admission.NewForbidden(a, err)
	}
	return nil
}

func judgeNode(node string, a admission.Attributes) error {
	switch a.GetResource().Group + "/" + a.GetResource().Resource {
	case "/nodes":
		return judgeNodeObject(node, a)
	case "/pods":
		return judgePod(node, a)
	case "coordination.k8s.io/leases":
		return requireName(node, a)
	}
	return nil
}

// nameOf is the object's name, also for a create, whose request carries none.
func nameOf(a admission.Attributes) string {
	if object, ok := a.GetObject().(metav1.Object); ok && a.GetOperation() == admission.Create {
		return object.GetName()
	}
	return a.GetName()
}

func requireName(node string, a admission.Attributes) error {
	if name := nameOf(a); name != node {
		return fmt.Errorf("node %q may not write %s %q: it does not bear its name", node, a.GetResource().Resource, name)
	}
	return nil
}

func judgeNodeObject(node string, a admission.Attributes) error {
	if err := requireName(node, a); err != nil {
		return err
	}
	object, ok := a.GetObject().(*corev1.Node)
	if !ok {
		return nil
	}
	old, ok := a.GetOldObject().(*corev1.Node)
	if !ok || a.GetOperation() == admission.Create {
		old = &corev1.Node{}
	} else if !equality.Semantic.DeepEqual(object.Spec.Taints, old.Spec.Taints) {
		return fmt.Errorf("node %q may not change its taints", node)
	}
	if !equality.Semantic.DeepEqual(object.OwnerReferences, old.OwnerReferences) {
		return fmt.Errorf("node %q may not set owner references", node)
	}
	if !maps.Equal(restricted(object.Labels), restricted(old.Labels)) {
		return fmt.Errorf("node %q may not change labels below %s, nor those of Kubernetes that are not a node's own", node, restrictedLabels)
	}
	return nil
}

// restricted are the labels that set the node apart, or give it a role.
func restricted(labels map[string]string) map[string]string {
	found := map[string]string{}
	for key, value := range labels {
		below := "." + key[:strings.IndexByte(key, '/')+1]
		ofKubernetes := strings.HasSuffix(below, ".kubernetes.io/") || strings.HasSuffix(below, ".k8s.io/")
		if strings.HasSuffix(below, "."+restrictedLabels) || ofKubernetes && !kubeletapis.IsKubeletLabel(key) {
			found[key] = value
		}
	}
	return found
}

// judgePod covers pods/status and deletion, the only writes to pods that the authorizer lets pass.
func judgePod(node string, a admission.Attributes) error {
	old, ok := a.GetOldObject().(*corev1.Pod)
	if !ok {
		return nil
	}
	if old.Spec.NodeName != node {
		return fmt.Errorf("node %q may not change pod %q: it is bound to %q", node, old.Name, old.Spec.NodeName)
	}
	changed, ok := a.GetObject().(*corev1.Pod)
	if ok && !maps.Equal(changed.Labels, old.Labels) {
		return fmt.Errorf("node %q may not change the labels of pod %q", node, old.Name)
	}
	return nil
}
