// Package process owns what a server or an agent does as a process: its version, how it
// collects garbage and within which memory, how often its threads wake, that it alone writes a data directory, that it
// waits for files of other programs, and how it opens its port.
//
// cmd, server and agent/host call it: GC, WakeLess and MemoryLimit once, at the start of a server, AgentGC and MemoryLimit at that of an
// agent, Lock for every command that writes to a data directory; agent/reset looks for who keeps a LockFile open. It calls nothing of ours.
//
// Promises: of two processes in the same role the second is refused (Lock), and the lock
// ends with its process, however that ends. GC and WakeLess last as long as the process.
//
// Tests: the arithmetic with a table, threads and locks on the kernel itself; the rest by the
// scripts of cmd/setpoint.
package process
