package gates

import (
	"flag"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/internal/pagetest"
)

var update = flag.Bool("update", false, "write the table of gates into docs/compatibility.md")

// TestValidate: what a gate is in any case is accepted, and all else is refused by name.
func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		values map[string]string
		wrong  string
	}{
		"nothing":              {},
		"as it is":             {values: map[string]string{"WatchList": "true", "GenericWorkload": "false", "ContainerStopSignals": "true", "NodeSwap": "0"}},
		"default on":           {values: map[string]string{"WatchList": "false"}, wrong: "--feature-gates: WatchList=false: it is on, and cannot be switched off, as by default in Kubernetes"},
		"default off":          {values: map[string]string{"GenericWorkload": "true"}, wrong: "GenericWorkload=true: it is off, and cannot be switched on, as by default"},
		"lacking":              {values: map[string]string{"NodeSwap": "true"}, wrong: "NodeSwap=true: it is off, and cannot be switched on: pods have no swap"},
		"more than by default": {values: map[string]string{"ContainerStopSignals": "false"}, wrong: "it is on, and cannot be switched off: lifecycle.stopSignal"},
		"of something else":    {values: map[string]string{"WinDSR": "false"}, wrong: "there is nothing to switch: nodes run Linux"},
		"unknown":              {values: map[string]string{"Nothing": "true"}, wrong: "Nothing=true: there is no such feature gate in Kubernetes 1.37"},
		"odd value":            {values: map[string]string{"WatchList": "maybe"}, wrong: "WatchList=maybe: the value must be true or false"},
		"all of a stage":       {values: map[string]string{"AllAlpha": "false"}, wrong: "AllAlpha=false: 4 gates cannot be switched, such as CBORServingAndStorage, ContainerStopSignals, CPUManagerPolicyAlphaOptions"},
		"two":                  {values: map[string]string{"WinDSR": "false", "AllBeta": "true"}, wrong: "\n--feature-gates: WinDSR=false"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(tc.values)
			if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// TestReasons: what differs from upstream's default differs, and says why.
func TestReasons(t *testing.T) {
	for _, g := range All() {
		differs := g.Here == On || g.Here == Off
		if (g.Why == "") != (g.Here == AsUpstream) || differs && g.On() == g.Default {
			t.Errorf("%+v", g)
		}
	}
}

// TestPage: docs/compatibility.md has the gates of which Setpoint does not what upstream does by default.
func TestPage(t *testing.T) {
	pagetest.Compare(t, "../../docs/compatibility.md", "gates", table(), *update)
}

// table has a row for each reason.
func table() string {
	rows, order := map[string][]string{}, []string{}
	for _, g := range All() {
		if g.Here == AsUpstream {
			continue
		}
		row := map[Here]string{On: "on", Off: "off", Nothing: "nothing to switch"}[g.Here] + ": " + g.Why
		if rows[row] == nil {
			order = append(order, row)
		}
		rows[row] = append(rows[row], "`"+g.Name+"`")
	}
	var b strings.Builder
	b.WriteString("| gate | here |\n|---|---|\n")
	for _, row := range order {
		b.WriteString("| " + strings.Join(rows[row], ", ") + " | " + row + " |\n")
	}
	return b.String()
}
