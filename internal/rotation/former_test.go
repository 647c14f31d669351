package rotation

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestUsersOfTheOldAuthorityAreTold by name, whoever has seen them last, and no more than LackingMax.
func TestUsersOfTheOldAuthorityAreTold(t *testing.T) {
	early, late := time.Unix(1000, 0).UTC(), time.Unix(2000, 0).UTC()
	member := func(last map[string]time.Time) Member { return Member{Held: []Held{{Kind: CA, Former: last}}} }
	told := Former([]Member{member(map[string]time.Time{"anna": early}), {}, member(map[string]time.Time{"anna": late, "ben": early, "carl": early})})
	line := Progress{State: State{Kind: CA, Phase: Use}, Former: told}.Line()
	want := "; these were seen with certificates of the old one: anna (last 1970-01-01T00:33:20Z), ben (last 1970-01-01T00:16:40Z), carl (last 1970-01-01T00:16:40Z)"
	if !strings.HasSuffix(line, want) {
		t.Errorf("%s\nwant %s", line, want)
	}
	for i := range LackingMax {
		told[fmt.Sprint("user-", i)] = early
	}
	if line = (Progress{State: State{Kind: CA, Phase: Use}, Former: told}).Line(); !strings.HasSuffix(line, ", and 3 more") {
		t.Error(line)
	}
	if Former([]Member{member(nil)}) != nil {
		t.Error("nobody was seen")
	}
}
