package plugin

import (
	"k8s.io/apimachinery/pkg/labels"

	"github.com/setpoint-io/setpoint/controllers/scheduler/views"
)

// MaxScore is the best normalized score a plugin gives a node; 0 is the worst.
const MaxScore int64 = 100

// Plugin is anything in a profile's list. It implements at least one of Filter, Score and Surveyor.
type Plugin interface {
	// Name is the upstream name of the plugin, as people know it from kube-scheduler's configuration.
	Name() string
}

// Filter rejects nodes by looking at one node at a time.
type Filter interface {
	Plugin
	// Filter prepares the judgement for one pod and all pods identical to it. It returns nil if the plugin has no
	// opinion about this pod. The returned function gives nil for a node that fits.
	Filter(pod *Pod) func(*Node) *Rejection
	// Wakes tells which events may turn a rejection by this plugin into a fit.
	Wakes() Event
}

// Score prefers nodes by looking at one node at a time.
type Score interface {
	Plugin
	// Score prepares the raw score for one pod and all pods identical to it; nil means no preference.
	Score(pod *Pod) func(*Node) int64
	// Normalize turns the raw scores of all feasible nodes into 0..MaxScore, in place.
	Normalize(scores []int64)
}

// Surveyor filters and scores by looking at the pods on all nodes.
type Surveyor interface {
	Plugin
	// Survey prepares the questions for one pod and all pods identical to it; nil means the plugin has no opinion.
	Survey(pod *Pod, world World) Survey
	// Wakes tells which events may turn a rejection by this plugin into a fit.
	Wakes() Event
}

// Survey asks the views for what one Surveyor wants to know for one class of identical pods.
type Survey interface {
	// Filters tells whether it rejects any node at all, as things are now.
	Filters() bool
	// Filter gives nil for a node that fits.
	Filter(node *Node) *Rejection
	// Score fills scores[i] for feasible[i] with 0..MaxScore; false means no preference.
	Score(feasible []*Node, scores []int64) bool
	// Release ends the use of the views.
	Release()
}

// World is what a Surveyor may know beyond the nodes.
type World struct {
	// Views count the placed pods.
	Views *views.Views
	// NamespaceLabels gives the labels of a namespace, nil for one not seen yet.
	NamespaceLabels func(namespace string) labels.Set
	// SpreadSelector selects the pods of the same services and owner; nil or empty if there are none.
	SpreadSelector labels.Selector
	// AffinityInUse tells that some placed pod has pod affinity or anti-affinity terms.
	AffinityInUse bool
}

// Event is a set of changes in the cluster that may make a waiting pod schedulable.
type Event uint16

// The events. A node's arrival wakes every pod, whatever rejected it.
const (
	NodeAdded Event = 1 << iota
	NodeGone
	NodeLabels
	NodeTaints // taints or spec.unschedulable
	NodeAllocatable
	NodeFeatures // status.declaredFeatures
	PodBound     // a pod now counts on a node
	PodGone      // a pod no longer counts on a node
	PodLabels
	PodShrunk
	NamespaceLabels
	ClaimChanged          // a volume, a storage class, or a claim of volumes
	DevicesChanged        // a claim of devices, or a class, slice or taint of devices
	ClassChanged          // a class of devices came or changed
	EventBits      = iota // how many distinct events there are
)
