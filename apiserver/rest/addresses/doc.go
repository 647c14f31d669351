// Package addresses allocates what must be unique to a Service: its cluster addresses and node ports. It also
// completes of which families of addresses a Service is.
//
// Cluster addresses come from all ServiceCIDRs that are ready. Each is shown by an IPAddress, which is written and deleted in the
// same transaction as the Service; an address that somebody else's IPAddress names is taken. A write that takes an address holds
// only while the ServiceCIDR that it comes from is what it was.
//
// apiserver/rest calls Allocate inside the decision of a write: the claims it returns are
// keys in the same transaction. It reads only the view that it is handed and the Book of internal/reserved, and draws at
// random; what is taken is judged again when the transaction is applied. It is tested
// through apiserver, also with generated worlds of Services, and which addresses are reserved by a table.
package addresses
