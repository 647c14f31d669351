// Package ledger is the account of which container has which devices of plugins, and the choice of those that one gets.
//
// It owns: shares (what a container has of a resource), the rules by which devices of an init container go on to the next container,
// the choice among healthy devices that nobody has, and the form in which shares are kept in a file.
//
// Promises: no I/O, no clock, no lock; the same input gives the same devices; a device is in the shares of one pod only. The file has
// the form of a kubelet's checkpoint, which tools read, but the checksum is ours.
//
// Tested with tables, and with pods that come and go by chance.
package ledger
