package machinetest

import (
	"fmt"

	"github.com/setpoint-io/setpoint/agent/base/machine"
)

// UnmountBelow takes away all that is mounted below dir. Call it as the last thing before dir is deleted; it panics if something stays
// mounted, because deleting dir would then delete what is mounted.
func UnmountBelow(dir string) {
	dir, err := machine.Resolve(dir)
	if err == nil {
		_, err = machine.UnmountBelow(dir)
	}
	left, failed := machine.MountsBelow(dir)
	if err != nil || failed != nil || len(left) > 0 {
		panic(fmt.Sprintf("%s must not be deleted: mounted below it: %v (%v, %v)", dir, left, err, failed))
	}
}
