// Package devicestest is a device plugin for tests: it speaks v1beta1 on a socket, gives what the test says, and remembers what it was
// asked. Nothing but tests imports it.
package devicestest
