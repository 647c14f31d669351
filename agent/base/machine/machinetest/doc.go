// Package machinetest keeps tests that run real containers from harming the machine that they run on.
//
// Tests that start an agent over a temporary directory call it; it calls package machine. Pods outlive the agent, so a test that fails
// may leave a folder of the host mounted below that directory, and Go's clean-up would delete what is in it. UnmountBelow runs before
// the clean-up, and ends the test program if something stays mounted: then nothing is deleted.
package machinetest
