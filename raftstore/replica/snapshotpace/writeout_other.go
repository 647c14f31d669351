//go:build !linux

package snapshotpace

import "os"

// writeOut is left to the system.
func writeOut(*os.File, int64, int64) {}
