// Package paidstream lets streams, which have no next request that could wait, pay for each part that they pass on: exec, attach,
// port-forward, logs and proxies send as fast as a pod writes.
//
// It owns what a part costs (Units) and the wrapper of an answer (Answer). A server lets streams pay for what it sends; what clients send
// their connections have paid for. A node's port lets them pay for both directions.
//
// Promises: it keeps nothing and starts nothing. Whoever pays decides how long a part waits. Tested with connections in memory; servers
// and nodes test that their streams wait.
package paidstream
