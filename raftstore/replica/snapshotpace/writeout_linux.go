package snapshotpace

import (
	"os"

	"golang.org/x/sys/unix"
)

// writeOut sends a part of a file to the disk and waits for that. It is a hint.
func writeOut(file *os.File, from, bytes int64) {
	const waitForAll = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	_ = unix.SyncFileRange(int(file.Fd()), from, bytes, waitForAll)
}
