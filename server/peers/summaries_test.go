package peers

import (
	"errors"
	"strings"
	"testing"
)

func TestSummariesThatAreNotTaken(t *testing.T) {
	const good = `{"node":{"nodeName":"n","cpu":{"time":"2026-01-01T00:00:00Z","usageCoreNanoSeconds":7,"usageNanoCores":1},"memory":{"workingSetBytes":5}},"pods":[]}`
	if s, err := readSummary(strings.NewReader(good)); err != nil || *s.Node.CPU.UsageCoreNanoSeconds != 7 || *s.Node.Memory.WorkingSetBytes != 5 {
		t.Errorf("a good one: %+v, %v", s, err)
	}
	for name, text := range map[string]string{
		"nothing":        "",
		"cut off":        good[:len(good)/2],
		"no object":      `[]`,
		"a negative":     strings.Replace(good, "7", "-7", 1),
		"no number":      strings.Replace(good, "7", "NaN", 1),
		"infinite":       strings.Replace(good, "7", "1e999", 1),
		"a fraction":     strings.Replace(good, "7", "7.5", 1),
		"out of range":   strings.Replace(good, "7", "18446744073709551616", 1),
		"a text":         strings.Replace(good, "7", `"7"`, 1),
		"no time":        strings.Replace(good, "2026-01-01T00:00:00Z", "noon", 1),
		"something more": good + "{}",
	} {
		if _, err := readSummary(strings.NewReader(text)); err == nil {
			t.Errorf("%s was taken", name)
		}
	}
	padded := good + strings.Repeat(" ", summaryBytesMax-len(good))
	if _, err := readSummary(strings.NewReader(padded)); err != nil {
		t.Errorf("the longest: %v", err)
	}
	if _, err := readSummary(strings.NewReader(padded + " ")); !errors.Is(err, errSummaryTooLong) {
		t.Errorf("too long: %v", err)
	}
}
