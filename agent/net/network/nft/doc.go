// Package nft changes and reads nftables in this network namespace. All of this module that does goes through it.
//
// It owns the connection: what it can hold, and what its errors mean. The library (github.com/google/nftables) makes the messages.
//
// It promises: a transaction may be as large as bytesMax. The kernel answers each message of one by an acknowledgement, and when these do
// not fit into the receiving buffer it says ENOBUFS, whether it took the transaction or refused it: [Conn.Flush] looks then, and says what
// is true ([ErrOutcomeUnknown] where it cannot: no table was made, or its handle could not be read). Elements are sent as many as a message
// can hold. A list that changed while the kernel sent it is read again, up to listTriesMax times.
//
// Tested in a network namespace, with buffers that are too small.
package nft
