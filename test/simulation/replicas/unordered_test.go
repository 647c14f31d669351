//go:build !ordered

package replicas_test

// setOrder would make the runtime's own choices those of a seed: this runtime cannot. See ordered_test.go.
var setOrder = func(uint64) {}
