// Package spelling finds the names that somebody may have meant who typed another one. The command asks it about commands and flags.
package spelling
