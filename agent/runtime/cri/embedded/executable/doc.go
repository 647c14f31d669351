// Package executable opens the program that the runtime starts in its hidden roles: shim, container init, pause and exec.
//
// It owns the choice among a configured file, the small helper that this build may carry (shimbinary) and the product itself, and a
// descriptor of it. The embedded runtime calls [Open] once. It promises that no container can change the program by what it sees of it,
// and that an upgrade of the file does not mix versions. Tested through the embedded runtime.
package executable
