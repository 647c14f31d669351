// Package images brings a container's image to the node.
//
// It owns: the pull policy, the back-off after failed pulls, and the choice of
// pull secrets. Called by: agent/pods, before each container start. It may call:
// the CRI image service and the secrets lookup in Config.
//
// Promises: Ensure blocks while it pulls, ends early with ctx, and returns a
// *Error whose Reason is the waiting reason upstream shows; at most pullsMax
// pulls run at once, and one image is pulled once at a time.
//
// Tested with a fake image service in bubbles.
package images
