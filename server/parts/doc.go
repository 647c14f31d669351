// Package parts shows what the parts of one server do, and reaches the parts of other servers.
//
// It owns the logs of a server's parts, which are in memory only: what its loops do (actions), and what the server logs (Logger). It
// serves them to the other servers under the kubelet's path containerLogs, answers how its parts are (Report), and asks other servers
// for both (Remote, which implements rest.Servers and the question of server/serverpods). There is one Parts for each
// server. It calls controllers/reconcile/actions.
//
// Promises: the options of `kubectl logs` are obeyed, or refused with 400; a follower who is slow is told how many lines he missed; a
// stream to a server that dies ends with a sentence and not with an error, so that kubectl goes on following the others.
//
// Tested with requests as other servers make them, and with two whole servers in package server.
package parts
