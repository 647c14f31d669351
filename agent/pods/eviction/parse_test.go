package eviction

import (
	"fmt"
	"strings"
	"testing"
)

// lines are thresholds as text, for a capacity of 1000.
func lines(list []Threshold) string {
	var out []string
	for _, t := range list {
		line := fmt.Sprintf("%s<%d", t.Signal, t.Value.of(1000))
		if !t.hard() {
			line += " for " + t.Grace.String()
		}
		if more := t.MinReclaim.of(1000); more != 0 {
			line += fmt.Sprintf(" +%d", more)
		}
		out = append(out, line)
	}
	return strings.Join(out, ", ")
}

func TestThresholdsAreReadAsUpstreamReadsThem(t *testing.T) {
	type m = map[string]string
	for _, c := range []struct {
		name string
		s    Statements
		want string // or the error
	}{
		{"none", Statements{}, ""},
		{"memory first", Statements{Hard: m{"pid.available": "10%", "imagefs.available": "15%", "nodefs.available": "20", "memory.available": "100"}},
			"memory.available<100, nodefs.available<20, imagefs.available<150, pid.available<100"},
		{"0% and 100% are none", Statements{Hard: m{"nodefs.available": "0%", "imagefs.available": "100%"}}, ""},
		{"hard, soft and what to reclaim", Statements{
			Hard: m{"memory.available": "5%"}, Soft: m{"memory.available": "10%"}, SoftGracePeriod: m{"memory.available": "1m30s"},
			MinimumReclaim: m{"memory.available": "7"},
		}, "memory.available<50 +7, memory.available<100 for 1m30s +7"},
		{"a soft one without a period", Statements{Soft: m{"memory.available": "1"}},
			"evictionSoft[memory.available]: grace period must be specified for the soft eviction threshold"},
		{"a signal that nobody knows", Statements{Hard: m{"luck.available": "1"}}, "evictionHard[luck.available]: unsupported eviction signal"},
		{"one that follows others", Statements{Hard: m{"containerfs.available": "1"}},
			"evictionHard[containerfs.available]: its values are those of nodefs or imagefs, whichever holds the containers"},
		{"nothing", Statements{Hard: m{"memory.available": "0"}}, `evictionHard[memory.available]: "0": must be positive`},
		{"too much", Statements{Hard: m{"memory.available": "101%"}}, `evictionHard[memory.available]: "101%": must be a percentage from 0% to 100%`},
		{"not a number", Statements{Hard: m{"memory.available": "NaN%"}}, `evictionHard[memory.available]: "NaN%": must be a percentage from 0% to 100%`},
		{"a negative period", Statements{SoftGracePeriod: m{"memory.available": "-1s"}},
			`evictionSoftGracePeriod[memory.available]: "-1s": must not be negative`},
		{"nothing to reclaim", Statements{MinimumReclaim: m{"memory.available": "0%"}},
			`evictionMinimumReclaim[memory.available]: "0%": must be positive`},
	} {
		list, err := ParseThresholds(c.s)
		got := lines(list)
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.name, got, c.want)
		}
	}
}

func TestTheDefaultsAreUpstreams(t *testing.T) {
	want := "memory.available<104857600, nodefs.available<100, nodefs.inodesFree<50, imagefs.available<150, imagefs.inodesFree<50"
	if p := DefaultPolicy(); lines(p.Thresholds) != want || p.Transition != DefaultTransition {
		t.Errorf("%s, %v", lines(p.Thresholds), p.Transition)
	}
}
