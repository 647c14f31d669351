package namespace

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/controllers/reconcile/conditions"
)

// deletion are the conditions of namespaces.
var deletion = conditions.Of(func(c *corev1.NamespaceCondition) (corev1.NamespaceConditionType, corev1.ConditionStatus, *metav1.Time) {
	return c.Type, c.Status, &c.LastTransitionTime
})

// withConditions is the status that says what still holds the namespace. It is
// pure; a status that needs no change comes back equal.
func withConditions(ns *corev1.Namespace, left *remains, now time.Time) corev1.NamespaceStatus {
	s := *ns.Status.DeepCopy()
	slices.Sort(left.discovery)
	slices.Sort(left.content)
	for _, c := range []struct {
		kind          corev1.NamespaceConditionType
		bad           bool
		reason, calm  string
		message, fine string
	}{
		{corev1.NamespaceDeletionDiscoveryFailure, len(left.discovery) > 0, "DiscoveryFailed", "ResourcesDiscovered",
			"Discovery failed for some groups: " + strings.Join(left.discovery, "; "), "All resources successfully discovered"},
		{corev1.NamespaceDeletionGVParsingFailure, false, "", "ParsedGroupVersions", "", "All legacy kube types successfully parsed"},
		{corev1.NamespaceDeletionContentFailure, len(left.content) > 0, "ContentDeletionFailed", "ContentDeleted",
			"Failed to delete all resource types: " + strings.Join(left.content, "; "), "All content successfully deleted, may be waiting on finalization"},
		{corev1.NamespaceContentRemaining, len(left.objects) > 0, "SomeResourcesRemain", "ContentRemoved",
			"Some resources are remaining: " + counted(left.objects, "%s has %d resource instances"), "All content successfully removed"},
		{corev1.NamespaceFinalizersRemaining, len(left.finalizers) > 0, "SomeFinalizersRemain", "ContentHasNoFinalizers",
			"Some content in the namespace has finalizers remaining: " + counted(left.finalizers, "%s in %d resource instances"), "All content-preserving finalizers finished"},
	} {
		next := corev1.NamespaceCondition{Type: c.kind, Status: corev1.ConditionFalse, Reason: c.calm, Message: c.fine}
		if c.bad {
			next.Status, next.Reason, next.Message = corev1.ConditionTrue, c.reason, c.message
		}
		s.Conditions = deletion.Set(s.Conditions, next, now)
	}
	return s
}

// counted lists what remains in a stable order.
func counted(counts map[string]int, format string) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf(format, name, counts[name]))
	}
	return strings.Join(parts, ", ")
}
