// Package admin is the ClusterService: the calls that `setpoint cluster`, `loops`, `why`, `rotate` and `backup` make to a
// running server. Orders that hold loops (pace.go) are carried out by the leader, and refused by servers that were not made for it.
//
// It owns both ends: the handlers (New, Services), which package server mounts on the API's port, and the
// client functions (Fetch..., OrderChange), which the command calls with a kubeconfig and a recovery with a
// server's certificate. The handlers call raftstore and read what they are handed of liveness, encryption and
// certificates.
//
// Promises: status, members, loops and orders that hold loops are for servers and administrators, why is for
// whoever may get the object, orders and backups for
// administrators alone, and audited; an archive that did not arrive whole is an error.
//
// Tested by the scripts members and backup, and over real sockets in package server.
package admin
