// Package leftovers finds what pods have left behind on a machine, in other ways than the agent finds it.
//
// Tests and the load harness look before pods are made and after they are gone; it calls nothing. What is missing afterwards is no
// concern of it. Tested by itself and by the tests that use it.
package leftovers
