// Package headroom measures the free space of a replica's disk: enough, low, or not enough for entries from the
// leader.
//
// It owns the figures that must stay free, and holds the reserve while there is room; when there is little it
// gives it up. It measures each second, and before entries are taken while there is little. It may import
// raftstore/replica/diskreserve.
//
// Promises: the status heals by itself, with hysteresis; the methods may be called from
// many goroutines once Open has returned. Tested with made-up disks, and through raftstore
// on small ones.
package headroom
