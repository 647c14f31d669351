// Package logs keeps container logs from filling the disk.
//
// It owns: the rotation of log files; the runtime writes them and agent/kubeletapi
// reads them. Called by: agent.Run. It may call: CRI.
//
// Promises: a container's logs take about filesMax times sizeMaxBytes; the
// present file always has its old name; a follower goes on in the new file; a
// rotation that fails changes nothing and is tried again.
//
// Tested on a real file system with a small limit.
package logs
