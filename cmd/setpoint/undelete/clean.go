package undelete

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// transient are resources that no one wants back: what happened, who held what, and what controllers noted.
var transient = []schema.GroupResource{
	{Resource: "events"},
	{Group: "events.k8s.io", Resource: "events"},
	{Group: "coordination.k8s.io", Resource: "leases"},
	{Group: "apps", Resource: "controllerrevisions"},
}

// aside says why an object is left out whoever owns it.
func aside(p *part, all map[types.UID]*part) string {
	gr, name := p.resource.GroupResource(), p.object.GetName()
	switch {
	case slices.Contains(transient, gr):
		return "it is not kept for long anyway"
	case p.object.GetDeletionTimestamp() != nil:
		return "it was being deleted already"
	case gr == schema.GroupResource{Resource: "serviceaccounts"} && name == "default",
		gr == schema.GroupResource{Resource: "configmaps"} && name == "kube-root-ca.crt":
		return "each namespace gets its own"
	case gr == schema.GroupResource{Resource: "endpoints"} && followsService(p, all):
		return "Service/" + name + " makes it again"
	case gr == schema.GroupResource{Resource: "pods"} && p.object.GetAnnotations()[corev1.MirrorPodAnnotationKey] != "":
		return "its node makes it again"
	case hasEnded(p):
		return "it had ended, and would run again"
	}
	return ""
}

// followsService tells Endpoints of a Service with a selector from those that somebody wrote.
func followsService(p *part, all map[types.UID]*part) bool {
	for _, other := range all {
		if other.resource.GroupResource() == (schema.GroupResource{Resource: "services"}) && other.object.GetName() == p.object.GetName() {
			selector, found, _ := unstructured.NestedMap(other.object.Object, "spec", "selector")
			return found && len(selector) > 0
		}
	}
	return false
}

// hasEnded tells whether a Job or a pod is done.
func hasEnded(p *part) bool {
	switch p.resource.GroupResource() {
	case schema.GroupResource{Resource: "pods"}:
		phase, _, _ := unstructured.NestedString(p.object.Object, "status", "phase")
		return phase == string(corev1.PodSucceeded) || phase == string(corev1.PodFailed)
	case schema.GroupResource{Group: "batch", Resource: "jobs"}:
		conditions, _, _ := unstructured.NestedSlice(p.object.Object, "status", "conditions")
		return slices.ContainsFunc(conditions, func(c any) bool {
			condition, _ := c.(map[string]any)
			return (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True"
		})
	}
	return false
}

// spent are finalizers and annotations of what was, which the object must not begin with.
var (
	spentFinalizers  = []string{"foregroundDeletion", "orphan", "batch.kubernetes.io/job-tracking"}
	spentAnnotations = []string{
		"deployment.kubernetes.io/revision", "pv.kubernetes.io/bind-completed", "pv.kubernetes.io/bound-by-controller",
		"volume.kubernetes.io/selected-node", "batch.kubernetes.io/job-tracking", corev1.ServiceAccountUIDKey,
	}
)

// clean makes an object as it was to one that can be created.
func clean(p *part, w world) {
	content := p.object.Object
	delete(content, "status")
	if metadata, ok := content["metadata"].(map[string]any); ok {
		for _, name := range []string{
			"uid", "resourceVersion", "creationTimestamp", "managedFields", "generation", "selfLink",
			"deletionTimestamp", "deletionGracePeriodSeconds",
		} {
			delete(metadata, name)
		}
	}
	p.object.SetFinalizers(slices.DeleteFunc(p.object.GetFinalizers(), func(f string) bool { return slices.Contains(spentFinalizers, f) }))
	annotations := p.object.GetAnnotations()
	for _, name := range spentAnnotations {
		delete(annotations, name)
	}
	p.object.SetAnnotations(annotations)
	if cleanKind := cleaners[p.resource.GroupResource()]; cleanKind != nil {
		cleanKind(p, w)
	}
}

// cleaners are for kinds with more of their own.
var cleaners = map[schema.GroupResource]func(*part, world){
	{Resource: "pods"}:                   func(p *part, _ world) { cleanPod(p) },
	{Resource: "secrets"}:                func(p *part, _ world) { cleanSecret(p) },
	{Resource: "services"}:               func(p *part, _ world) { cleanService(p) },
	{Resource: "persistentvolumeclaims"}: cleanClaim,
	{Resource: "namespaces"}:             func(p *part, _ world) { delete(p.object.Object, "spec") },
	{Group: "batch", Resource: "jobs"}:   func(p *part, _ world) { cleanJob(p) },
}

func drop(p *part, path ...string) { unstructured.RemoveNestedField(p.object.Object, path...) }

// cleanPod has the scheduler and admission decide anew.
func cleanPod(p *part) {
	for _, field := range []string{"nodeName", "priority", "ephemeralContainers"} {
		drop(p, "spec", field)
	}
}

// cleanSecret drops the token of an account that is no more: the account that comes back gets its own in that place.
func cleanSecret(p *part) {
	if kind, _, _ := unstructured.NestedString(p.object.Object, "type"); kind != string(corev1.SecretTypeServiceAccountToken) {
		return
	}
	for _, key := range []string{corev1.ServiceAccountTokenKey, corev1.ServiceAccountRootCAKey, corev1.ServiceAccountNamespaceKey} {
		drop(p, "data", key)
	}
	p.notes = append(p.notes, "with a new token")
}

// cleanService drops addresses, which somebody else may have by now. Ports of nodes stay: they were chosen, or are known to others.
func cleanService(p *part) {
	if address, _, _ := unstructured.NestedString(p.object.Object, "spec", "clusterIP"); address == corev1.ClusterIPNone || address == "" {
		return
	}
	drop(p, "spec", "clusterIP")
	drop(p, "spec", "clusterIPs")
	drop(p, "spec", "healthCheckNodePort")
	p.notes = append(p.notes, "with a new cluster IP")
}

func cleanClaim(p *part, w world) {
	volume, _, _ := unstructured.NestedString(p.object.Object, "spec", "volumeName")
	switch {
	case volume == "":
	case w.volumes[volume]:
		p.volume = volume
		p.notes = append(p.notes, "with its volume "+volume)
	default:
		drop(p, "spec", "volumeName")
		p.notes = append(p.notes, "with a new volume: "+volume+" is no more")
	}
}

// jobLabels are those that a Job's pods get from it.
var jobLabels = []string{"controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name"}

// cleanJob drops what the API made of the former uid.
func cleanJob(p *part) {
	if manual, _, _ := unstructured.NestedBool(p.object.Object, "spec", "manualSelector"); manual {
		return
	}
	drop(p, "spec", "selector")
	for _, label := range jobLabels {
		drop(p, "spec", "template", "metadata", "labels", label)
		drop(p, "metadata", "labels", label)
	}
}
