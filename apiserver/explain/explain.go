package explain

import (
	"fmt"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// causesMax is how many causes of one object are named.
	causesMax = 10
	// depthMax is how far causes of causes are followed.
	depthMax = 6
)

// Object names an object.
type Object struct {
	Kind      string `json:"kind"`
	Group     string `json:"group,omitempty"`
	Resource  string `json:"resource"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

// String is KIND/NAME.
func (o Object) String() string { return o.Kind + "/" + o.Name }

// Answer says why an object is as it is.
type Answer struct {
	Object Object `json:"object"`
	// Held says whether anything was found that holds the object.
	Held bool `json:"held"`
	// Conclusion is one sentence.
	Conclusion string `json:"conclusion"`
	// Causes are what holds it.
	Causes []Cause `json:"causes,omitempty"`
	// Innocent are what was looked at and does not hold it.
	Innocent []Suspect `json:"innocent,omitempty"`
	// Nodes are the verdicts on a pod that waits for a node.
	Nodes []Node `json:"nodes,omitempty"`
	// History is how the object came to be as it is: each step is because of the next.
	History []Step `json:"history,omitempty"`
}

// Cause is something that holds an object.
type Cause struct {
	Object Object `json:"object"`
	// What it is, in one sentence.
	What string `json:"what"`
	// Change is what would end it, Command does that where one command can.
	Change  string `json:"change,omitempty"`
	Command string `json:"command,omitempty"`
	// Causes are why it is so.
	Causes []Cause `json:"causes,omitempty"`
}

// Suspect was looked at and holds nothing.
type Suspect struct {
	Object Object `json:"object"`
	Why    string `json:"why"`
}

// Node is what the scheduler's plugins say of one node; without refusals the pod fits there.
type Node struct {
	Name     string    `json:"name"`
	Refusals []Refusal `json:"refusals,omitempty"`
}

// Refusal is what one plugin has against a node, and what would lift it.
type Refusal struct {
	Plugin  string   `json:"plugin"`
	Reasons []string `json:"reasons"`
	// Remedies complete the sentence "it would fit if ...".
	Remedies []string `json:"remedies,omitempty"`
}

// A World is what one server knows. Objects are shared and must not be changed.
type World interface {
	// Now is the server's time.
	Now() time.Time
	// Get returns an object, or nil.
	Get(o Object) metav1.Object
	// List returns the objects of a kind in a namespace, or in all if that is empty.
	List(kind Kind, namespace string) []metav1.Object
	// Left are the objects of all kinds in a namespace, but events; not more than limit.
	Left(namespace string, limit int) []Named
	// Judge asks the scheduler's plugins about a pod.
	Judge(pod *corev1.Pod) Judgement
	// Write returns the change that made a revision, if it is still known.
	Write(revision uint64) (Write, bool)
	// Failing are the last errors of the loops that act on an object.
	Failing(o Object) []Failure
}

// Named is an object and its name.
type Named struct {
	Object Object
	Meta   metav1.Object
}

// Failure is a key of a loop whose last pass failed.
type Failure struct{ Loop, Error string }

// Judgement is what the scheduler's plugins say of a pod.
type Judgement struct {
	// Foreign tells that the pod asks for another scheduler; the rest is empty then.
	Foreign bool
	// Refusal is a reason that no node can lift.
	Refusal string
	// Message is that of the pod's condition, Hint the smallest change; empty if it fits.
	Message, Hint string
	Nodes         []JudgedNode
	// Plugins are those that had an opinion.
	Plugins []string
}

// JudgedNode is a Node with what commands are made from.
type JudgedNode struct {
	Node
	Object *corev1.Node
	// Cost orders changes between nodes.
	Cost int64
	// FreeMilliCPU and FreeMemory (bytes) are what no pod has requested.
	FreeMilliCPU, FreeMemory int64
}

// Explain says why the object is as it is.
func Explain(w World, name Object, object metav1.Object) Answer {
	e := &explainer{World: w, seen: map[Object]bool{}}
	f := e.of(name, object)
	return Answer{
		Object: name, Held: len(f.causes) > 0, Conclusion: f.conclusion,
		Causes: atMost(f.causes), Innocent: f.innocent, Nodes: f.nodes,
		History: history(w, name, object.GetResourceVersion()),
	}
}

// finding is what is known of one object.
type finding struct {
	conclusion string
	causes     []Cause
	innocent   []Suspect
	nodes      []Node
}

func (f *finding) blame(c Cause) { f.causes = append(f.causes, c) }

func (f *finding) clear(o Object, format string, args ...any) {
	f.innocent = append(f.innocent, Suspect{o, fmt.Sprintf(format, args...)})
}

// conclude sets the sentence: what is held, or that nothing was found.
func (f *finding) conclude(held, free string) finding {
	f.conclusion = held
	if len(f.causes) == 0 {
		f.conclusion = free
	}
	return *f
}

// explainer follows causes from object to object, and comes to none twice.
type explainer struct {
	World
	seen map[Object]bool
}

func (e *explainer) of(name Object, object metav1.Object) finding {
	if e.seen[name] || len(e.seen) > depthMax*causesMax {
		return finding{conclusion: name.String() + " is named above"}
	}
	e.seen[name] = true
	if object.GetDeletionTimestamp() != nil {
		return e.terminating(name, object)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		return e.pod(name, o)
	case *corev1.PersistentVolumeClaim:
		return e.claim(name, o)
	case *corev1.Node:
		return e.node(name, o)
	case *appsv1.Deployment:
		return e.deployment(name, o)
	case *appsv1.ReplicaSet:
		return e.replicaSet(name, o)
	case *appsv1.StatefulSet:
		return e.statefulSet(name, o)
	case *appsv1.DaemonSet:
		return e.daemonSet(name, o)
	case *batchv1.Job:
		return e.job(name, o)
	case *batchv1.CronJob:
		return e.cronJob(name, o)
	case *autoscalingv2.HorizontalPodAutoscaler:
		return e.autoscaler(name, o)
	case *corev1.Service:
		return e.service(name, o)
	case *policyv1.PodDisruptionBudget:
		return e.budget(name, o)
	}
	f := finding{}
	e.failing(&f, name)
	f.clear(name, "it is not being deleted")
	return f.conclude(name.String()+" is what a control loop fails at", "nothing is known to hold "+name.String())
}

// failing blames what the loops' last passes said.
func (e *explainer) failing(f *finding, name Object) {
	for _, failure := range e.Failing(name) {
		f.blame(Cause{Object: name, What: fmt.Sprintf("the loop %s fails: %s", failure.Loop, failure.Error)})
	}
}

// because is a cause that is explained by another object.
func (e *explainer) because(name Object, object metav1.Object) (Cause, bool) {
	f := e.of(name, object)
	return f.asCause(name), len(f.causes) > 0
}

// asCause is a finding as the cause of another; the name of its object is not said twice.
func (f *finding) asCause(name Object) Cause {
	return Cause{Object: name, What: strings.TrimPrefix(f.conclusion, name.String()+" "), Causes: atMost(f.causes)}
}

// atMost keeps causesMax causes and counts the others.
func atMost(causes []Cause) []Cause {
	if len(causes) <= causesMax {
		return causes
	}
	kept := append([]Cause(nil), causes[:causesMax]...)
	last := &kept[causesMax-1]
	last.What += fmt.Sprintf(" (and %d more causes like these)", len(causes)-causesMax)
	return kept
}
