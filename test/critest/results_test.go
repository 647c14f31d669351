package main

import (
	"slices"
	"strings"
	"testing"
)

const sample = `<testsuites><testsuite>
<testcase name="[BeforeSuite]" status="passed"></testcase>
<testcase name="[It] b passes" status="passed"></testcase>
<testcase name="[It] a fails" status="failed"><failure message="it is broken&#xA;here"></failure></testcase>
<testcase name="[It] a benchmark" status="skipped"><skipped message="skipped"></skipped></testcase>
<testcase name="[It] c is left out" status="skipped"><skipped message="skipped - no AppArmor"></skipped></testcase>
</testsuite></testsuites>`

func TestReportIsRead(t *testing.T) {
	got, err := parseReport([]byte(sample))
	want := []result{{"a fails", "failed", "it is broken\nhere"}, {"b passes", "passed", ""}, {"c is left out", "skipped", "no AppArmor"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("%v %v", got, err)
	}
	text := render(got, map[string]string{"a fails": "The environment's: no reason"})
	for _, line := range []string{
		"1 of 3 cases passed, 1 failed, 1 do not apply", "- `a fails`: The environment's: no reason", "- `c is left out`: no AppArmor", "- `b passes`",
	} {
		if !strings.Contains(text, line) {
			t.Errorf("no %q in:\n%s", line, text)
		}
	}
}

func TestUnexplainedFailuresFail(t *testing.T) {
	o := &options{dir: t.TempDir()}
	if err := o.judge([]result{{"nobody knows", "failed", "why"}}); err == nil {
		t.Error("a failure that nobody explains is accepted")
	}
	if err := o.judge([]result{{"fine", "passed", ""}}); err != nil {
		t.Error(err)
	}
}

func TestExplainedIsRead(t *testing.T) {
	explained, err := readExplained()
	if err != nil || len(explained) == 0 {
		t.Errorf("%v %v", explained, err)
	}
}
