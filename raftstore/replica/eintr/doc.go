// Package eintr makes system calls again that signals have broken off.
//
// Go's own scheduler sends signals, and the calls of package unix return EINTR to whoever makes them by hand, where package os would go on.
// What it calls must not have taken effect when it says so, as is true of allocating, syncing and asking for the room of a file system.
//
// Tested with answers in place of calls.
package eintr
