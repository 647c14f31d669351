package shares

import "syscall"

// OfFiles is how many of something can be open that takes a file descriptor each: so many, but no more than one in part of
// those that this process may open, and at least 2.
func OfFiles(most, part int) int {
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
		return most
	}
	return int(min(uint64(most), max(2, files.Cur/uint64(part))))
}
