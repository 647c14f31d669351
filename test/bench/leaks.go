package main

import "github.com/setpoint-io/setpoint/agent/base/machine/machinetest/leftovers"

// countLeft counts, by its kind, what was not on this machine before.
func countLeft(before leftovers.Things, m metrics) {
	for kind, names := range (leftovers.Scope{}).Look().Since(before) {
		for _, name := range names {
			logf("left: %s %s", kind, name)
		}
		m["left_"+kind] = float64(len(names))
	}
}
