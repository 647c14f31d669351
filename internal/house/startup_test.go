package house

import (
	"regexp"
	"testing"
)

// startsCollecting is how main begins: helpers of pods and nodes are the same program, do not return from what main calls for them, and
// would never collect garbage.
var startsCollecting = regexp.MustCompile(`(?m)^func main\(\) \{\n\tstartup\.Done\(os\.Args\)`)

func TestHouseMainCollects(t *testing.T) {
	eachSource(t, func(f *sourceFile) {
		if f.path == "cmd/setpoint/main.go" && !startsCollecting.MatchString(f.text) {
			t.Errorf("%s: main must begin with startup.Done(os.Args)\n\twhy: what it calls before would never collect garbage for as long as it lives", f.path)
		}
	})
}
