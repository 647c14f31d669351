package kstatus

import (
	"os"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/yaml"

	"github.com/setpoint-io/setpoint/test/judges"
)

// TestStories: both say the same of every version of every object of the stories.
func TestStories(t *testing.T) {
	record := judges.Play(t)
	c := comparison{}
	c.judgeAll(t, record)
	c.report(t)
}

func TestStoriesInVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := comparison{}
		c.judgeAll(t, judges.PlayVirtual(t))
		c.report(t)
	})
}

// TestPlanted: both say the same of the statuses that were planted to mislead somebody.
func TestPlanted(t *testing.T) {
	text, err := os.ReadFile("../testdata/mutants.txt")
	if err != nil {
		t.Fatal(err)
	}
	c := comparison{}
	for _, part := range strings.Split("\n"+string(text), "\n-- ")[1:] {
		_, docs, _ := strings.Cut(part, " --\n")
		for doc := range strings.SplitSeq(docs, "\n---\n") {
			c.judge(t, read(t, strings.TrimPrefix(doc, "gone ")))
		}
	}
	c.report(t)
}

// TestGenerated: both say the same of objects with any statuses.
func TestGenerated(t *testing.T) {
	c := comparison{}
	for seed := range uint64(generated) {
		c.judge(t, generate(seed))
	}
	c.report(t)
	for _, g := range kinds {
		for _, verdict := range g.verdicts {
			if c[g.kind+" "+string(verdict)] == 0 {
				t.Errorf("no %s was %s: the generator does not reach it", g.kind, verdict)
			}
		}
	}
}

// comparison counts the objects of a kind with a verdict.
type comparison map[string]int

func (c comparison) judgeAll(t *testing.T, record *judges.Record) {
	t.Helper()
	for _, event := range record.Events(t) {
		c.judge(t, event.Object.(*unstructured.Unstructured))
	}
}

// judge compares what both say of an object.
func (c comparison) judge(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	want, message := theirs(o)
	got := judges.Kstatus(o)
	if got == judges.Begun {
		got = judges.Done // ours tells a Job that runs from one that is done, and kstatus does not
	}
	if got != want && c.differ() {
		body, err := yaml.Marshal(o.Object)
		t.Errorf("%s, and kstatus %s: %s\n%s%v", got, want, message, body, err)
	}
	c[o.GetKind()+" "+string(want)]++
}

// reportsMax is how many objects are written that are judged differently.
const reportsMax = 10

// differ counts one that is judged differently, and reports whether to write it.
func (c comparison) differ() bool {
	c["differing"]++
	return c["differing"] <= reportsMax
}

// theirs is kstatus' own verdict, in words of ours, with what it says of it.
func theirs(o *unstructured.Unstructured) (judges.Verdict, string) {
	result, err := status.Compute(o)
	if err != nil {
		return judges.Unknown, err.Error()
	}
	return map[status.Status]judges.Verdict{
		status.InProgressStatus: judges.InProgress, status.FailedStatus: judges.Failed, status.CurrentStatus: judges.Done,
		status.TerminatingStatus: judges.Deleting,
	}[result.Status], result.Message
}

func (c comparison) report(t *testing.T) {
	t.Helper()
	if len(c) == 0 {
		t.Error("nothing was judged")
	}
	t.Log(c)
}

func read(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	body, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	var object unstructured.Unstructured
	if err := object.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	return &object
}
