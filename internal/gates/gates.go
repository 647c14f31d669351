package gates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Gate is one of upstream's.
type Gate struct {
	Name    string
	Stage   Stage
	Default bool // upstream
	Here    Here
	Why     string // Here is not AsUpstream
}

// Stage is how far upstream has come with a feature, in its words.
type Stage string

// Stages.
const (
	Alpha      Stage = "Alpha"
	Beta       Stage = "Beta"
	GA         Stage = "GA"
	Deprecated Stage = "Deprecated"
)

// Here is what Setpoint does.
type Here int

const (
	// AsUpstream does what upstream does by default.
	AsUpstream Here = iota
	// On does what the gate is about, and upstream does not by default.
	On
	// Off does not do it, and upstream does by default.
	Off
	// Nothing here is what the gate is about.
	Nothing
)

// On tells whether Setpoint does what the gate is about. Of a gate that is about nothing here it is upstream's default.
func (g Gate) On() bool {
	switch g.Here {
	case On:
		return true
	case Off:
		return false
	default:
		return g.Default
	}
}

// All returns the gates by name.
func All() []Gate { return slices.Clone(gates) }

// Validate says, a line for each, which values of --feature-gates are not what Setpoint does.
func Validate(values map[string]string) error {
	var wrong []error
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := judge(name, values[name]); err != nil {
			wrong = append(wrong, fmt.Errorf("--feature-gates: %s=%s: %w", name, values[name], err))
		}
	}
	return errors.Join(wrong...)
}

func judge(name, value string) error {
	on, err := strconv.ParseBool(value)
	if err != nil {
		return errors.New("the value must be true or false")
	}
	switch name {
	case "AllAlpha":
		return judgeStage(Alpha, on)
	case "AllBeta":
		return judgeStage(Beta, on)
	}
	i := slices.IndexFunc(gates, func(g Gate) bool { return g.Name == name })
	if i < 0 {
		return errors.New("there is no such feature gate in Kubernetes 1.37")
	}
	return gates[i].judge(on)
}

func (g Gate) judge(on bool) error {
	switch {
	case on == g.On():
		return nil
	case g.Here == Nothing:
		return fmt.Errorf("there is nothing to switch: %s", g.Why)
	case g.Why != "":
		return fmt.Errorf("%s: %s", cannot(on), g.Why)
	default:
		return fmt.Errorf("%s, as by default in Kubernetes", cannot(on))
	}
}

func cannot(on bool) string {
	if on {
		return "it is off, and cannot be switched on"
	}
	return "it is on, and cannot be switched off"
}

// otherNamesMax is how many gates of a stage are named that are not as asked for.
const otherNamesMax = 3

// judgeStage judges all gates of a stage at once.
func judgeStage(stage Stage, on bool) error {
	var others []string
	for _, g := range gates {
		if g.Stage == stage && g.On() != on {
			others = append(others, g.Name)
		}
	}
	if len(others) == 0 {
		return nil
	}
	named := strings.Join(others[:min(len(others), otherNamesMax)], ", ")
	return fmt.Errorf("%d gates cannot be switched, such as %s", len(others), named)
}
