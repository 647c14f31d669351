package judges

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// world is every object that was seen and is still there, by uid, and which have a controller, by the controller's uid.
type world struct {
	objects map[string]*unstructured.Unstructured
	owned   map[string]map[string]bool
	// ever are the uids of all that there was.
	ever map[string]bool
	// inNamespace counts objects.
	inNamespace map[string]int
}

func newWorld() *world {
	return &world{objects: map[string]*unstructured.Unstructured{}, owned: map[string]map[string]bool{}, ever: map[string]bool{},
		inNamespace: map[string]int{}}
}

func (w *world) put(o *unstructured.Unstructured) {
	uid := string(o.GetUID())
	if w.objects[uid] == nil {
		w.inNamespace[o.GetNamespace()]++
	}
	w.objects[uid], w.ever[uid] = o, true
	if owner := ownerOf(o); owner != "" {
		if w.owned[owner] == nil {
			w.owned[owner] = map[string]bool{}
		}
		w.owned[owner][uid] = true
	}
}

func (w *world) remove(o *unstructured.Unstructured) {
	uid := string(o.GetUID())
	if w.objects[uid] != nil {
		w.inNamespace[o.GetNamespace()]--
	}
	delete(w.objects, uid)
	delete(w.owned[ownerOf(o)], uid)
}

// ownerOf is the uid of an object's controller.
func ownerOf(o *unstructured.Unstructured) string {
	for _, ref := range o.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			return string(ref.UID)
		}
	}
	return ""
}

// each calls f for each object of a kind; namespace "" is any.
func (w *world) each(kind, namespace string, f func(o *unstructured.Unstructured)) {
	for _, o := range w.objects {
		if o.GetKind() == kind && (namespace == "" || o.GetNamespace() == namespace) {
			f(o)
		}
	}
}

// find is the object of a kind and name.
func (w *world) find(kind, namespace, name string) (found *unstructured.Unstructured) {
	w.each(kind, namespace, func(o *unstructured.Unstructured) {
		if o.GetName() == name {
			found = o
		}
	})
	return found
}

// podsOf are the pods of a workload; those of a Deployment belong to its ReplicaSets.
func (w *world) podsOf(uid string) (pods []*unstructured.Unstructured) {
	for owned := range w.owned[uid] {
		switch o := w.objects[owned]; {
		case o == nil:
		case o.GetKind() == "Pod":
			pods = append(pods, o)
		case o.GetKind() == "ReplicaSet":
			pods = append(pods, w.podsOf(owned)...)
		}
	}
	return pods
}

// rolledOut is whether the pods of a workload are as it wants them: enough of its template are ready, and of others none is left that
// nobody has asked to stop.
func (w *world) rolledOut(o *unstructured.Unstructured) bool {
	ready, others := int64(0), 0
	for _, pod := range w.podsOf(string(o.GetUID())) {
		switch {
		case pod.GetDeletionTimestamp() != nil:
		case o.GetKind() != "ReplicaSet" && !isOf(pod, o):
			others++
		case isTrue(pod, "Ready"):
			ready++
		}
	}
	return ready >= w.wanted(o) && (others == 0 || byHand(o))
}

// byHand is a workload some of whose pods keep their template until somebody deletes them.
func byHand(o *unstructured.Unstructured) bool {
	return text(o, "spec", "updateStrategy", "type") == "OnDelete" || number(o, 0, "spec", "updateStrategy", "rollingUpdate", "partition") > 0
}

func (w *world) wanted(o *unstructured.Unstructured) (n int64) {
	if o.GetKind() != "DaemonSet" {
		return replicas(o)
	}
	selector, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "spec", "nodeSelector")
	w.each("Node", "", func(node *unstructured.Unstructured) {
		if within(selector, node.GetLabels()) {
			n++
		}
	})
	return n
}

// isOf is whether a pod was made from the template that a workload has now.
func isOf(pod, o *unstructured.Unstructured) bool {
	labels, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "labels")
	annotations, _, _ := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata", "annotations")
	if !within(labels, pod.GetLabels()) || !within(annotations, pod.GetAnnotations()) {
		return false
	}
	want, has := mapsOf(list(o, "spec", "template", "spec", "containers")), mapsOf(list(pod, "spec", "containers"))
	if len(want) > len(has) {
		return false
	}
	for i, container := range want {
		for _, field := range []string{"name", "image", "command", "args", "env"} {
			if !reflect.DeepEqual(container[field], has[i][field]) {
				return false
			}
		}
	}
	return true
}

// within is whether all of some labels are among others.
func within(some, all map[string]string) bool {
	for key, value := range some {
		if all[key] != value {
			return false
		}
	}
	return true
}

// runningOf counts the pods of a Job that have not ended.
func (w *world) runningOf(o *unstructured.Unstructured) (n int) {
	for _, pod := range w.podsOf(string(o.GetUID())) {
		if phase := text(pod, "status", "phase"); !strings.Contains("Succeeded Failed", phase) || phase == "" {
			n++
		}
	}
	return n
}
