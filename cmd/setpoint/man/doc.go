// Package man is `setpoint man`: one manual page for each command, written into a folder.
//
// The pages say what --help says. Tested by the script install.txtar and by its own tests.
package man
