package judges

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// lacking is what is not yet as an object asks; "" if it is. Of the pods of workloads the court says itself, as they may fail again.
func (w *world) lacking(o *unstructured.Unstructured) string {
	switch o.GetKind() {
	case "Job":
		return w.lackingJob(o)
	case "HorizontalPodAutoscaler":
		return w.lackingAutoscaler(o)
	case "PodDisruptionBudget":
		return lackingBudget(o)
	case "PersistentVolumeClaim":
		return w.lackingClaim(o)
	case "Service":
		return w.lackingService(o)
	case "Gateway":
		return lackingGateway(o)
	case "CustomResourceDefinition":
		return lackingDefinition(o)
	case "APIService":
		return w.lackingAPIService(o)
	}
	return ""
}

func (w *world) lackingJob(o *unstructured.Unstructured) string {
	_, policy, _ := unstructured.NestedMap(o.Object, "spec", "successPolicy")
	want := number(o, 1, "spec", "completions")
	switch n := w.runningOf(o); {
	case n > 0:
		return fmt.Sprintf("%d of its pods run", n)
	case !policy && count(o, "succeeded") < want:
		return fmt.Sprintf("%d of %d pods have succeeded", count(o, "succeeded"), want)
	}
	return ""
}

// lackingAutoscaler judges one that scales: what it wants is in the range that its newest generation has.
func (w *world) lackingAutoscaler(o *unstructured.Unstructured) string {
	if !isTrue(o, "AbleToScale") || !isTrue(o, "ScalingActive") || !observed(o) {
		return ""
	}
	least, most := number(o, 1, "spec", "minReplicas"), number(o, 0, "spec", "maxReplicas")
	if n := count(o, "desiredReplicas"); n < least || n > most {
		return fmt.Sprintf("it desires %d replicas, which are to be between %d and %d", n, least, most)
	}
	kind, name := text(o, "spec", "scaleTargetRef", "kind"), text(o, "spec", "scaleTargetRef", "name")
	if w.find(kind, o.GetNamespace(), name) == nil {
		return fmt.Sprintf("its target %s %s is not there", kind, name)
	}
	return ""
}

// lackingBudget judges one that is computed for its newest generation.
func lackingBudget(o *unstructured.Unstructured) string {
	if !observed(o) {
		return ""
	}
	desired, healthy, allowed := count(o, "desiredHealthy"), count(o, "currentHealthy"), count(o, "disruptionsAllowed")
	least := number(o, desired, "spec", "minAvailable")
	switch {
	case count(o, "expectedPods") > 0 && least != desired:
		return fmt.Sprintf("%d are to be healthy by the status, and %d by the spec", desired, least)
	case allowed > max(0, healthy-desired):
		return fmt.Sprintf("%d may be disrupted, and %d of %d are healthy", allowed, healthy, desired)
	case conditionOf(o, "DisruptionAllowed") != nil && isTrue(o, "DisruptionAllowed") != (allowed > 0):
		return fmt.Sprintf("%d may be disrupted, and the condition is %s", allowed, condition(o, "DisruptionAllowed"))
	}
	return ""
}

// lackingClaim judges one that is bound.
func (w *world) lackingClaim(o *unstructured.Unstructured) string {
	if text(o, "status", "phase") != "Bound" {
		return "it is not bound"
	}
	volume := w.find("PersistentVolume", "", text(o, "spec", "volumeName"))
	switch {
	case volume == nil:
		return "its volume is not there"
	case text(volume, "spec", "claimRef", "uid") != string(o.GetUID()):
		return "its volume is another's"
	case sizeOf(o, "status", "capacity", "storage") > sizeOf(volume, "spec", "capacity", "storage"):
		return "its volume has less room"
	}
	return ""
}

func sizeOf(o *unstructured.Unstructured, path ...string) int64 {
	q, err := resource.ParseQuantity(text(o, path...))
	if err != nil {
		return 0
	}
	return q.Value()
}

// addresses are those of the load balancer of a Service, an Ingress, or in the status of a Gateway.
func addresses(o *unstructured.Unstructured) (found []string) {
	for _, a := range mapsOf(list(o, "status", "loadBalancer", "ingress")) {
		for _, field := range []string{"ip", "hostname"} {
			if s, _ := a[field].(string); s != "" {
				found = append(found, s)
			}
		}
	}
	return found
}

func portsOf(o *unstructured.Unstructured) (found []string) {
	for _, p := range mapsOf(list(o, "spec", "ports")) {
		found = append(found, fmt.Sprint(p["protocol"], p["port"]))
	}
	return found
}

// lackingService judges one whose load balancer has addresses: no other Service has the same one and port.
func (w *world) lackingService(o *unstructured.Unstructured) (what string) {
	if text(o, "spec", "type") != "LoadBalancer" {
		return ""
	}
	w.each("Service", "", func(other *unstructured.Unstructured) {
		if other.GetUID() != o.GetUID() && text(other, "spec", "type") == "LoadBalancer" &&
			meet(addresses(o), addresses(other)) && meet(portsOf(o), portsOf(other)) {
			what = other.GetName() + " has the same address and port"
		}
	})
	return what
}

func meet(a, b []string) bool {
	return slices.ContainsFunc(a, func(s string) bool { return slices.Contains(b, s) })
}

// lackingGateway judges one that is programmed: it has an address, and each listener that it asks for is programmed.
func lackingGateway(o *unstructured.Unstructured) string {
	if len(list(o, "status", "addresses")) == 0 {
		return "it has no address"
	}
	told := map[string]bool{}
	for _, l := range mapsOf(list(o, "status", "listeners")) {
		name, _ := l["name"].(string)
		one := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"conditions": l["conditions"]}}}
		one.SetGeneration(o.GetGeneration())
		told[name] = isTrue(one, "Programmed") && generationOf(one, "Programmed") >= o.GetGeneration()
	}
	for _, l := range mapsOf(list(o, "spec", "listeners")) {
		if name, _ := l["name"].(string); !told[name] {
			return "its listener " + name + " is not programmed for this generation"
		}
	}
	return ""
}

// lackingDefinition judges one that is established.
func lackingDefinition(o *unstructured.Unstructured) string {
	for _, field := range []string{"kind", "plural", "singular", "listKind"} {
		if accepted, asked := text(o, "status", "acceptedNames", field), text(o, "spec", "names", field); accepted != asked {
			return fmt.Sprintf("its %s is %q, and %q is accepted", field, asked, accepted)
		}
	}
	for _, v := range mapsOf(list(o, "spec", "versions")) {
		name, _ := v["name"].(string)
		if v["storage"] == true && !slices.Contains(list(o, "status", "storedVersions"), any(name)) {
			return "its storage version " + name + " is not among the stored ones"
		}
	}
	return ""
}

// lackingAPIService judges one that is available.
func (w *world) lackingAPIService(o *unstructured.Unstructured) string {
	name := text(o, "spec", "service", "name")
	if name != "" && w.find("Service", text(o, "spec", "service", "namespace"), name) == nil {
		return "its Service is not there"
	}
	return ""
}
