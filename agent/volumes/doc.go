// Package volumes prepares a pod's volumes on the host.
//
// It owns: the directory volumes/ of each pod, the tmpfs mounts in it, and the bind
// mounts that pin sub-paths. It may call: the lookups and drivers in Config; it
// knows no container runtime. What CSI drivers mount is agent/volumes/csi's.
//
// Promises: Mount is idempotent and is also how content is refreshed: files of
// ConfigMaps, Secrets, the downward API and projections change together, by one
// rename of the ..data link, so a reader never sees half an update. No path in a
// volume or sub-path leads out of it, whatever links its content has. Unmount
// removes everything, and works on what a crashed agent left. Keys of certificates
// (KEP-4317) are made here, are never on a disk, and last until a signer issues the
// next certificate; a signer that is late holds the first mount only, for
// issueTimeout at a time.
//
// Tested on a real file system; tests that mount or change owners need root. Tokens
// and certificates grow old in a synctest bubble.
//
// It is also the room of what stands below it. In the order in which to read: csi and csinode (the CSI drivers of a node, and what its
// CSINode tells of them), local (volumes on this node's disk), watched (ConfigMaps and Secrets that pods have as volumes), volumestats
// (how full volumes are). None of them imports this package; they may import agent/base and podconfig.
package volumes
