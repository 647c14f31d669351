// Package logbridge passes on what hashicorp/raft has to say to log/slog.
//
// It is called by raftstore/replica, for raft, its transport and its snapshots. It
// promises that the library is one or two levels quieter than it means to be: most of
// its errors are about a peer that cannot be reached, and heal. It keeps nothing and
// any goroutine may call it. Its table of levels is tested through it.
package logbridge
