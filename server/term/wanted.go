package term

import (
	"fmt"
	"slices"
	"strings"

	"github.com/setpoint-io/setpoint/controllers"
)

// schedulerLoop is the scheduler among the loops of a Config.
const schedulerLoop = "scheduler"

// CheckLoops refuses names that no control loop has.
func CheckLoops(names []string) error {
	known := append(controllers.Names(), schedulerLoop)
	for _, name := range names {
		if !slices.Contains(known, name) {
			slices.Sort(known)
			return fmt.Errorf("there is no control loop %q: they are %s", name, strings.Join(known, ", "))
		}
	}
	return nil
}

// LoopsWithout are all control loops but some, which there must be.
func LoopsWithout(names ...string) ([]string, error) {
	all := append(controllers.Names(), schedulerLoop)
	return slices.DeleteFunc(all, func(name string) bool { return slices.Contains(names, name) }), CheckLoops(names)
}

// schedules says whether the scheduler runs.
func (c *Config) schedules() bool {
	return !c.APIOnly && (c.Loops == nil || slices.Contains(c.Loops, schedulerLoop))
}
