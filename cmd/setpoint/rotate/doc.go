// Package rotate is what `setpoint rotate` does: it has a server begin a rotation of a key, tell how far it is, or go back.
//
// It owns the order of the command line and what is printed. The keys never leave the servers. It asks servers by the Shell that it is
// handed, and nobody else.
//
// Tested with a table; the command by the script rotate.
package rotate
