// Package clusterstatus asks the servers of a cluster how they are, and judges whether somebody is needed.
//
// It owns who is asked: the members of the log, as the server says that knows best, whichever of them a kubeconfig names; the words
// for why a server does not answer; the verdict, and the table. cmd/setpoint gives it colours.
//
// Promises: a server that was removed is not shown, one that joined is; all are asked at once, in two rounds of at most Timeout.
// Tested with tables, and by the script members with whole servers.
package clusterstatus
