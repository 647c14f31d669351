package auth_test

import (
	"testing"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver/auth"
)

func node(name string, change func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": "x"}}}
	if change != nil {
		change(n)
	}
	return n
}

func pod(on string, labels map[string]string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels}, Spec: corev1.PodSpec{NodeName: on}}
}

func TestNodeRestriction(t *testing.T) {
	nodes := corev1.SchemeGroupVersion.WithResource("nodes")
	pods := corev1.SchemeGroupVersion.WithResource("pods")
	leases := coordinationv1.SchemeGroupVersion.WithResource("leases")
	taint := func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k", Effect: corev1.TaintEffectNoSchedule}} }
	owner := func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "o"}} }
	apart := func(n *corev1.Node) { n.Labels["team.node-restriction.kubernetes.io/secure"] = "true" }
	role := func(n *corev1.Node) { n.Labels["node-role.kubernetes.io/control-plane"] = "" }
	zone := func(n *corev1.Node) { n.Labels[corev1.LabelTopologyZone] = "z1" }
	label := func(n *corev1.Node) { n.Labels["disk"] = "ssd" }
	lease := func(name string) *coordinationv1.Lease {
		return &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	for name, c := range map[string]struct {
		who         user.Info
		resource    schema.GroupVersionResource
		subresource string
		operation   admission.Operation
		object, old runtime.Object
		allowed     bool
	}{
		"registers itself, with taints":  {nodeA, nodes, "", admission.Create, node("a", taint), nil, true},
		"registers another":              {nodeA, nodes, "", admission.Create, node("b", nil), nil, false},
		"registers itself set apart":     {nodeA, nodes, "", admission.Create, node("a", apart), nil, false},
		"registers itself with an owner": {nodeA, nodes, "", admission.Create, node("a", owner), nil, false},
		"labels itself":                  {nodeA, nodes, "", admission.Update, node("a", label), node("a", nil), true},
		"tells its zone":                 {nodeA, nodes, "", admission.Update, node("a", zone), node("a", nil), true},
		"gives itself a role":            {nodeA, nodes, "", admission.Update, node("a", role), node("a", nil), false},
		"sets itself apart":              {nodeA, nodes, "", admission.Update, node("a", apart), node("a", nil), false},
		"drops what set it apart":        {nodeA, nodes, "status", admission.Update, node("a", nil), node("a", apart), false},
		"changes its taints":             {nodeA, nodes, "", admission.Update, node("a", nil), node("a", taint), false},
		"gets an owner":                  {nodeA, nodes, "status", admission.Update, node("a", owner), node("a", nil), false},
		"changes another":                {nodeA, nodes, "status", admission.Update, node("b", nil), node("b", nil), false},
		"an administrator may":           {admin, nodes, "", admission.Update, node("b", apart), node("b", nil), true},
		"creates its lease":              {nodeA, leases, "", admission.Create, lease("a"), nil, true},
		"creates another's lease":        {nodeA, leases, "", admission.Create, lease("b"), nil, false},
		"reports its pod":                {nodeA, pods, "status", admission.Update, pod("a", nil), pod("a", nil), true},
		"reports another's pod":          {nodeA, pods, "status", admission.Update, pod("b", nil), pod("b", nil), false},
		"claims an unbound pod":          {nodeA, pods, "status", admission.Update, pod("a", nil), pod("", nil), false},
		"changes the labels of its pod":  {nodeA, pods, "status", admission.Update, pod("a", map[string]string{"app": "db"}), pod("a", nil), false},
		"deletes its pod":                {nodeA, pods, "", admission.Delete, nil, pod("a", nil), true},
		"deletes another's pod":          {nodeA, pods, "", admission.Delete, nil, pod("b", nil), false},
		"a server deletes any pod":       {server, pods, "", admission.Delete, nil, pod("b", nil), true},
	} {
		t.Run(name, func(t *testing.T) {
			objectName := ""
			if old, ok := c.old.(metav1.Object); ok {
				objectName = old.GetName()
			}
			err := auth.NodeRestriction{}.Validate(t.Context(), admission.NewAttributesRecord(c.object, c.old, schema.GroupVersionKind{},
				"x", objectName, c.resource, c.subresource, c.operation, nil, false, c.who), nil)
			if (err == nil) != c.allowed || err != nil && !apierrors.IsForbidden(err) {
				t.Errorf("allowed %v, want %v: %v", err == nil, c.allowed, err)
			}
		})
	}
}
