package judges

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/kubectl/pkg/polymorphichelpers"
)

// Verdict is what a tool makes of one version of an object.
type Verdict string

const (
	// Unknown is that the tool has no rule for the kind, or for what the object says.
	Unknown Verdict = ""
	// InProgress is that it waits.
	InProgress Verdict = "in progress"
	// Begun is that the object does what was asked and has not ended, such as a Job that runs.
	Begun Verdict = "begun"
	// Done ends waiting with success, Failed without.
	Done   Verdict = "done"
	Failed Verdict = "failed"
	// Deleting is that the object is on its way out.
	Deleting Verdict = "deleting"
)

// Rule is how a tool judges.
type Rule struct {
	Name string
	// Of judges one version.
	Of func(o *unstructured.Unstructured) Verdict
	// misled is true where upstream's status misleads the rule too; nil: nowhere.
	misled func(o *unstructured.Unstructured) bool
}

// Rules are those of all tools.
var Rules = []Rule{
	{"kstatus", Kstatus, unruled},
	{"Argo CD", argo, resumed},
	{"Ansible", ansible, withoutSurge},
	{"kubectl rollout status", rollout, nil},
	{"kubectl wait", awaited, nil},
}

// rollout is what ends `kubectl rollout status`.
func rollout(o *unstructured.Unstructured) Verdict {
	viewer, err := polymorphichelpers.StatusViewerFor(o.GroupVersionKind().GroupKind())
	if err != nil || o.GetDeletionTimestamp() != nil {
		return Unknown
	}
	switch _, done, err := viewer.Status(o, 0); {
	case err != nil && reason(o, "Progressing") == "ProgressDeadlineExceeded":
		return Failed
	case err != nil:
		return Unknown // it cannot follow an update that users make by hand
	case done:
		return Done
	}
	return InProgress
}

// awaited is what people wait for with `kubectl wait`, by condition or by a field. A condition counts if it is of the newest generation.
func awaited(o *unstructured.Unstructured) Verdict {
	switch o.GetKind() {
	case "Job":
		if isTrue(o, "Failed") {
			return Failed
		}
		return when(isTrue(o, "Complete"))
	case "CustomResourceDefinition":
		return when(isTrue(o, "Established"))
	case "APIService":
		return when(isTrue(o, "Available"))
	case "Gateway":
		return when(isTrue(o, "Programmed") && generationOf(o, "Programmed") >= o.GetGeneration())
	case "HorizontalPodAutoscaler":
		return when(isTrue(o, "ScalingActive") && observed(o))
	case "PersistentVolumeClaim":
		return when(text(o, "status", "capacity", "storage") == text(o, "spec", "resources", "requests", "storage"))
	case "Service":
		if text(o, "spec", "type") != "LoadBalancer" {
			return Unknown // nobody waits for its address
		}
		return when(len(list(o, "status", "loadBalancer", "ingress")) > 0)
	case "Ingress":
		return when(len(list(o, "status", "loadBalancer", "ingress")) > 0)
	case "Namespace":
		return when(text(o, "status", "phase") == "Active")
	}
	return Unknown
}

// unruled is a kind of which kstatus knows nothing, and which it calls current whatever its conditions say.
func unruled(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Gateway" || o.GetKind() == "APIService" || o.GetKind() == "Ingress"
}

func when(done bool) Verdict {
	if done {
		return Done
	}
	return InProgress
}

// withoutSurge is a Deployment whose old pods stop before new ones are asked for. With it there is a moment when the old pods are stopping
// and no new one is asked for yet, and nothing in the counts shows it. So it is when the Deployment is being deleted.
func withoutSurge(o *unstructured.Unstructured) bool {
	if o.GetKind() != "Deployment" {
		return false
	}
	surge, found, _ := unstructured.NestedFieldNoCopy(o.Object, "spec", "strategy", "rollingUpdate", "maxSurge")
	return o.GetDeletionTimestamp() != nil || text(o, "spec", "strategy", "type") == "Recreate" || found && surge == int64(0)
}

// resumed is a Job that was suspended and is not: its condition stays, with the status False, and the rule looks at the type alone.
func resumed(o *unstructured.Unstructured) bool {
	return o.GetKind() == "Job" && condition(o, "Suspended") == "False"
}
