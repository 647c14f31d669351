// Package table says where an HTTP request goes, by Ingresses and the objects that they name.
//
// It owns the meaning of Ingresses: which are ours, which host, path and path type wins, which annotations are honoured, which endpoints
// and certificates are used, and what is wrong with them. agent/net/router serves requests by a Table; controllers/ingress tells users the
// Problems of the same Build. It imports API types only.
//
// Promises: Build and every lookup are pure, and a Table never changes. Of two Ingresses that claim the same, the older wins, and the
// other has a Problem; a host is one namespace's (agent/net/router/hosts). What cannot be honoured is left out with a Problem, never
// guessed; an access rule that cannot be read refuses everybody. A lookup costs the same with any number of hosts, and grows with the
// depth of the path.
//
// Tested with tables of the API's documentation, and a property that compares lookups with a plain search.
package table
