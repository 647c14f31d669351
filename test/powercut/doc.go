// Package powercut is a file system that can lose its power: what was written and
// not synced is gone, or half gone, as on a disk whose cache was never flushed.
//
// It is mounted over a directory that plays the disk (FUSE, as root). Writes stay
// in memory until fsync or fdatasync. Cut ends it all at one instant: each
// sector written since the last sync survives or not, by a seeded coin, and nothing
// reaches the disk after that. Names (create, rename, remove) are durable at once; so
// this finds a missing sync of a file, not one of a directory.
//
// Syncs can also be made slow, or to fail.
//
// Its tests run the store on it in a process of its own: that process maps the files
// into memory, and a page fault that this one had to answer could wait for itself.
// They prove that nothing acknowledged is lost, whatever the instant; and that the
// layer does lose what nobody synced. POWER_CUTS=n cuts n times.
package powercut
