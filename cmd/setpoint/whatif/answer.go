package whatif

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Answer is what would happen.
type Answer struct {
	// What is to happen, from what the cluster held at a revision.
	What     string    `json:"what"`
	Revision uint64    `json:"revision"`
	Taken    time.Time `json:"taken"`
	// Quiet says whether nothing changes any more, Lasted after which time, or how much time passed.
	Quiet  bool     `json:"quiet"`
	Lasted Duration `json:"lasted"`
	// Restless are the last changes of a fork that is not quiet.
	Restless []string `json:"restless,omitempty"`
	// Assumptions are how the fork differs from the cluster by design.
	Assumptions []string `json:"assumptions"`

	Made     []Pod     `json:"made,omitempty"`
	Moved    []Move    `json:"moved,omitempty"`
	Ended    []Pod     `json:"ended,omitempty"`
	Pending  []Pod     `json:"pending,omitempty"`
	NotReady []Pod     `json:"notReady,omitempty"`
	Budgets  []Budget  `json:"budgets,omitempty"`
	Services []Service `json:"services,omitempty"`
	Quotas   []Quota   `json:"quotas,omitempty"`
	// Refused are pods that admission refuses to their controllers for another reason than a quota.
	Refused []Quota `json:"refused,omitempty"`
	// Due is what is known to come after the time that was looked at.
	Due    []string `json:"due,omitempty"`
	Events []Event  `json:"events"`
	// States are all nodes and pods before and after, if the question wants them.
	States *States `json:"states,omitempty"`
}

// States are nodes and pods when the act began, and in the end.
type States struct {
	Nodes []NodeStates `json:"nodes"`
	Now   []Pod        `json:"now"`
	Then  []Pod        `json:"then"`
}

// NodeStates is what is the matter with a node before and after, nothing if it is ready.
type NodeStates struct {
	Name string `json:"name"`
	Now  string `json:"now,omitempty"`
	Then string `json:"then,omitempty"`
}

// Duration is written as people do.
type Duration time.Duration

// MarshalJSON implements json.Marshaler.
func (d Duration) MarshalJSON() ([]byte, error) { return []byte(`"` + d.String() + `"`), nil }

// String implements fmt.Stringer: to the second.
func (d Duration) String() string { return time.Duration(d).Round(time.Second).String() }

// Pod is one pod at the end, or at the beginning if it has ended.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Owner     string `json:"owner,omitempty"`
	Node      string `json:"node,omitempty"`
	Ready     bool   `json:"ready"`
	// UID tells a pod from one that was made again with its name. Ending is told to end, Over has ended. All three in States only.
	UID    types.UID `json:"uid,omitempty"`
	Ending bool      `json:"ending,omitempty"`
	Over   bool      `json:"over,omitempty"`
	// Why are the reasons of one that waits or is not ready.
	Why []string `json:"why,omitempty"`
	// Before: that was so before the act.
	Before bool `json:"before,omitempty"`
}

// Move is a pod that ended, and another of the same owner that was made for it.
type Move struct {
	From Pod `json:"from"`
	To   Pod `json:"to"`
}

// Budget is a PodDisruptionBudget that was in the way, or was not kept.
type Budget struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Refused are evictions that it refused, Said is its word.
	Refused int    `json:"refused"`
	Said    string `json:"said,omitempty"`
	// Broken is for how long fewer pods were healthy than it demands.
	Broken Duration `json:"broken"`
	// Lasts: that is so at the end.
	Lasts bool `json:"lasts"`
}

// Service is one that had ready endpoints, and then none for a while.
type Service struct {
	Namespace string   `json:"namespace"`
	Name      string   `json:"name"`
	From      Duration `json:"from"`
	For       Duration `json:"for"`
	// Lasts: it has none at the end.
	Lasts bool `json:"lasts"`
}

// Quota is what a ResourceQuota, or admission otherwise, refused.
type Quota struct {
	Namespace string   `json:"namespace"`
	Object    string   `json:"object"`
	Said      string   `json:"said"`
	At        Duration `json:"at"`
}

// Event is something that happens, in its order.
type Event struct {
	At Duration `json:"at"`
	// Count is how many objects it is told of.
	Count int    `json:"count"`
	What  string `json:"what"`
}
