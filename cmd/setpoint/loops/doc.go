// Package loops is `setpoint loops`: what the control loops do, each pass as it ends, and the orders that hold them.
//
// It owns the table (table.go), the passes (passes.go, watch.go) and the orders pause, step and resume (hold.go). It asks any server
// through package server/admin, which asks the one on which the loops act.
//
// Promises: what others named is printed without control characters; a watch that cannot keep up says how many passes it missed, and
// goes on when another server leads. It only reads, but for the orders, which servers refuse unless their cluster is one to learn on.
//
// Tested with tables of passes, and through the binary by the script loops.
package loops
