// Package logbridge forwards the log lines of hashicorp/raft to log/slog.
//
// It lowers the library's levels by one or two, because most of its errors concern a peer that cannot be
// reached and resolve themselves. It keeps nothing and any goroutine may call it. Its table of levels is
// tested through it.
package logbridge
