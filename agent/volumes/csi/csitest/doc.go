// Package csitest is a CSI driver for tests: it records what it is asked, fails or hangs when it is told to, and, if it is given
// a folder, has volumes in it.
//
// It owns: its sockets and what they lead to. Tests of agent/volumes/csi and of the agent call it; it calls gRPC only.
//
// Promises: calls are recorded in the order in which they arrived, also those that hang. Tested by the tests that use it.
package csitest
