// Package logs keeps container logs from filling the disk, and lets collectors of logs find them.
//
// It owns: the rotation of log files, and the links to them; the runtime writes them and agent/api/kubeletapi reads them. It may call: CRI,
// agent/base/wait, agent/runtime/observed.
//
// Promises: a container's logs take about filesMax times sizeMaxBytes, and beside that what it writes between two looks, which are a
// second apart while a log grows fast; a log that cannot be rotated keeps no other from it; the present file always has its old name; a
// follower goes on in the new file; a rotation that fails changes nothing and is tried again. If there is a folder of links, a running
// container's log has one there, and one whose file is gone goes at the next look.
//
// Tested on a real file system with a small limit.
package logs
