// Package removed answers in the place of a server that was removed from its cluster.
//
// Such a server has data of the cluster and may serve none of it. It stays and tells whoever comes, so that nobody has to look into its
// log: users, agents and other servers get one sentence, which says what to do, and nothing else. A process that ended instead would be
// started again and again by systemd, and its clients would see a port that is closed, like that of a machine that is off.
//
// It owns that answer (Handler, Serve), and a note beside the marks of the store (Note), by which the server knows at its next start
// what it was told once, also when no other server can be reached. The note goes with the data that it is about. Package server calls it;
// it calls internal/trust and internal/strangers.
//
// Promises: every request is answered 503 with the sentence, as a Status of the API or, to parts of the control plane, as their own kind of
// error; nothing of a request is read, and who asks is not looked at. Connections are limited as those of strangers at every port.
//
// Tested here over TLS, and with the real binary by the script removed.
package removed
