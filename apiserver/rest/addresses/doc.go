// Package addresses gives Services what no two may have: an address in the cluster and
// node ports. It also completes of which families of addresses a Service is.
//
// apiserver/rest calls Allocate inside the decision of a write: the claims it returns are
// keys in the same transaction. It reads only the view that it is handed, and draws at
// random; what is taken is judged again when the transaction is applied. It is tested
// through apiserver.
package addresses
