package storage

import "k8s.io/apimachinery/pkg/runtime/schema"

var nodeResource = schema.GroupResource{Resource: "nodes"}

// essential reports whether a change passes although a server's disk is nearly
// full. What is being deleted must get through every step of it, and a node that
// could not say that it lives would lose its pods.
func (w *write) essential(v *View, change *Change) bool {
	if change.Delete || change.Object.GetDeletionTimestamp() != nil {
		return true
	}
	switch w.table.kind.GroupResource() {
	case leaseResource:
		return true
	case nodeResource:
		return v.Current != nil
	}
	return false
}
