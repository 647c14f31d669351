// Package nodefaults breaks what a node stands on, and looks at what becomes of its pods.
//
// One `setpoint server` and one `setpoint agent` with real containers run in network, mount and PID namespaces of their own; the agent's
// data directory is a small file system of its own, so that it can be filled or made read-only while the servers are well. Each test
// of TestFaults is one fault. Whatever it is:
//
//   - the pods that it hits end in a state that tells why, and are well again when it is over;
//   - the bystander, a pod that was there before, is not restarted, and answers as always (bystander_test.go);
//   - nothing is left when the fault's pods are gone: no mount, link, process, namespace, group, loop device, or file of a
//     pod (agent/base/machine/machinetest/leftovers).
//
// Random moments come from a seed, which is printed; NODEFAULTS_SEED=n plays them again as far as the machine's own timing allows.
// With -short there are fewer rounds and pods. NODEFAULTS_PODS is how many pods come and go at once in TestFaults/crowd, NODEFAULTS_EXECS
// and NODEFAULTS_WATCHES what one tenant tries to open in TestFaults/one_tenant_takes_what_he_can. It needs root.
//
// To add a fault, write a function of *node and add it to faults in faults_test.go, with a comment that says what must be true.
// SETPOINT_TEST_BINARY is the absolute path of a binary to test instead of one built here.
package nodefaults
