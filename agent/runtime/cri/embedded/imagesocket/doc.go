// Package imagesocket lets `setpoint images` reach the embedded runtime's image store.
//
// It owns the socket images.sock in the runtime's folder, and what is said over it: HTTP with JSON, archives as they are, progress
// of pulls as a line each. It is served beside the runtime, or for the time of one command when no agent runs. It may call: the
// image store and agent/base/private.
//
// Promises: only the folder's owner, root, can connect; a socket that a killed process left is replaced; bodies are
// bounded; an archive that breaks off is an error at the other end, never a shorter archive; a client that leaves
// ends its pull, unless others wait for the same one.
//
// Tested over a real socket with a store of archives made in the test.
package imagesocket
