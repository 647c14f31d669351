package judges

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Court hears versions of objects in the order in which they were stored. It belongs to one goroutine.
type Court struct {
	// Findings are the versions that mislead. Versions counts those of each kind, Told how often a rule said Done or Failed of a kind.
	Findings []string
	Versions map[string]int
	Told     map[string]int

	world    *world
	subjects map[string]*subject
}

// subject is an object that is judged.
type subject struct {
	last *unstructured.Unstructured
	// met says that a workload's pods were as it asks at some time since it asks for it.
	met bool
	// failed are the verdicts of rules that nothing excused, by the rule, with the generation.
	failed map[string]failure
	// done are the specs of which a rule has said that they are done.
	done map[string]string
}

type failure struct {
	generation int64
	what       string
}

// NewCourt has seen nothing yet.
func NewCourt() *Court {
	return &Court{Versions: map[string]int{}, Told: map[string]int{}, world: newWorld(), subjects: map[string]*subject{}}
}

// kinds are those that are judged. All others are evidence.
var kinds = []string{"Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "HorizontalPodAutoscaler",
	"PodDisruptionBudget", "PersistentVolumeClaim", "Service", "Ingress", "Gateway", "CustomResourceDefinition", "APIService", "Namespace"}

var workloads = kinds[:4]

// See hears of one version; gone is that the object was deleted.
func (c *Court) See(o *unstructured.Unstructured, gone bool) {
	if gone {
		c.world.remove(o)
		c.seeGone(o)
		return
	}
	c.world.put(o)
	c.look(o)
	if !slices.Contains(kinds, o.GetKind()) {
		return
	}
	c.Versions[o.GetKind()]++
	s := c.subject(o)
	c.seeItself(s, o)
	for _, rule := range Rules {
		c.ask(rule, s, o)
	}
	s.last = o
}

func (c *Court) subject(o *unstructured.Unstructured) *subject {
	uid := string(o.GetUID())
	s := c.subjects[uid]
	if s == nil {
		s = &subject{failed: map[string]failure{}, done: map[string]string{}}
		c.subjects[uid] = s
	}
	if s.last != nil && (!sameTemplate(s.last, o) || replicas(o) > replicas(s.last)) {
		s.met = false
	}
	s.met = s.met || slices.Contains(workloads, o.GetKind()) && c.world.rolledOut(o)
	return s
}

func sameTemplate(a, b *unstructured.Unstructured) bool {
	return fmt.Sprint(a.Object["spec"].(map[string]any)["template"]) == fmt.Sprint(b.Object["spec"].(map[string]any)["template"])
}

// look notes which workloads have their pods, after one of these has changed.
func (c *Court) look(o *unstructured.Unstructured) {
	for owner := ownerOf(o); owner != ""; {
		workload := c.world.objects[owner]
		if workload == nil {
			return
		}
		if s := c.subjects[owner]; s != nil && !s.met {
			s.met = slices.Contains(workloads, workload.GetKind()) && c.world.rolledOut(workload)
		}
		owner = ownerOf(workload)
	}
}

// ask judges a version by a rule, and the rule's verdict by the world.
func (c *Court) ask(rule Rule, s *subject, o *unstructured.Unstructured) {
	verdict := rule.Of(o)
	c.seeLost(rule, s, o, verdict)
	if verdict != Done && verdict != Failed || rule.misled != nil && rule.misled(o) {
		return
	}
	c.Told[rule.Name+" "+o.GetKind()+" "+string(verdict)]++
	if verdict == Failed {
		if excuse := c.world.fault(s.last, o); excuse == "" {
			s.failed[rule.Name] = failure{o.GetGeneration(), statusText(o)}
		}
		return
	}
	if f, failed := s.failed[rule.Name]; failed && f.generation == o.GetGeneration() {
		c.find(o, rule.Name+": it had failed, and is done; it was "+f.what)
		delete(s.failed, rule.Name)
	}
	what := c.world.lacking(o)
	if slices.Contains(workloads, o.GetKind()) && !s.met {
		what = "its pods are not"
	}
	if what != "" {
		c.find(o, rule.Name+": it is called done, and "+what)
	}
}

// steady are kinds that stay done until something else is asked of them. The pods of workloads may fail.
var steady = []string{"PersistentVolumeClaim", "Service", "Ingress", "Gateway", "CustomResourceDefinition"}

// seeLost finds one that was done, of which nothing else is asked, and that is not done any more.
func (c *Court) seeLost(rule Rule, s *subject, o *unstructured.Unstructured, verdict Verdict) {
	spec := fmt.Sprint(o.Object["spec"])
	switch was := s.done[rule.Name]; {
	case verdict == Done:
		s.done[rule.Name] = spec
	case verdict != Deleting && was == spec && slices.Contains(steady, o.GetKind()) && o.GetDeletionTimestamp() == nil:
		c.find(o, rule.Name+": it was done, is not, and nothing else is asked")
	}
}

// fault is why a rule may say that an object has failed, although it may be done later without a change.
func (w *world) fault(last, o *unstructured.Unstructured) string {
	switch o.GetKind() {
	case "ReplicaSet":
		return fieldOf(o, "ReplicaFailure", "message")
	case "HorizontalPodAutoscaler":
		return reason(o, "ScalingActive") + reason(o, "AbleToScale") // the metrics or the target may come later
	case "Deployment":
		return stalled(last, o)
	case "CustomResourceDefinition":
		return w.namesake(o)
	case "Gateway":
		if last == nil || len(list(last, "status", "addresses")) == 0 {
			return "it had no address yet"
		}
	case "PersistentVolumeClaim":
		if w.find("PersistentVolume", "", text(o, "spec", "volumeName")) == nil {
			return "its volume is not there"
		}
	}
	return ""
}

// stalled says that a Deployment has made no progress for as long as it may.
func stalled(last, o *unstructured.Unstructured) string {
	if last == nil || reason(last, "Progressing") == "ProgressDeadlineExceeded" {
		return "it is so for long"
	}
	since, err := time.Parse(time.RFC3339, fieldOf(last, "Progressing", "lastUpdateTime"))
	now, err2 := time.Parse(time.RFC3339, fieldOf(o, "Progressing", "lastUpdateTime"))
	deadline := time.Duration(number(o, 600, "spec", "progressDeadlineSeconds")) * time.Second
	if err != nil || err2 != nil || now.Sub(since) < deadline {
		return ""
	}
	return "there was no progress"
}

// namesake is another definition whose names are the same.
func (w *world) namesake(o *unstructured.Unstructured) (name string) {
	w.each("CustomResourceDefinition", "", func(other *unstructured.Unstructured) {
		if other.GetUID() != o.GetUID() && text(other, "spec", "group") == text(o, "spec", "group") {
			name = other.GetName()
		}
	})
	return name
}

// seeGone judges that a Namespace is gone: nothing is left in it.
func (c *Court) seeGone(o *unstructured.Unstructured) {
	if n := c.world.inNamespace[o.GetName()]; o.GetKind() == "Namespace" && n > 0 {
		c.find(o, fmt.Sprintf("it is gone, and %d objects are left in it", n))
	}
}

func (c *Court) find(o *unstructured.Unstructured, what string) {
	of := fmt.Sprintf("%s %s/%s generation %d", o.GetKind(), o.GetNamespace(), o.GetName(), o.GetGeneration())
	c.Findings = append(c.Findings, of+": "+what+"\n\t"+statusText(o))
}

func statusText(o *unstructured.Unstructured) string {
	status, _, _ := unstructured.NestedMap(o.Object, "status")
	return strings.ReplaceAll(fmt.Sprint("status ", status), "\n", " ")
}
