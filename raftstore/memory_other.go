//go:build !linux

package raftstore

// machineBytes is not known here: all objects may take what they take.
func machineBytes() int64 { return 0 }
