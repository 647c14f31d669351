// Package capabilities knows which capabilities a container asks for.
//
// It owns their names and the set that runtimes give by default. It calls the CRI types only. It promises: a name that is none is
// an error, and a privileged container has all. Tested with a table, and by real containers of the runtime.
package capabilities
