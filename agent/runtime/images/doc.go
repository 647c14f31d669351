// Package images brings a container's image to the node.
//
// It owns: the pull policy, the back-off after failed pulls, the choice of pull secrets, and the records of who may use
// which image. An image is asked for before each container start. It may call: the CRI image service and the secrets lookup
// in Config.
//
// Promises: Ensure blocks while it pulls, ends early with ctx, and returns a
// *Error whose Reason is the waiting reason upstream shows; at most pullsMax
// pulls run at once, and one image is pulled once at a time. An image that was
// pulled with a Secret is used by pods with that Secret, or with the same login, and
// one that was pulled by a token of a service account by pods with that account;
// for any other the registry is asked again, and with the policy Never it is as
// if the image were not there. Images that no pull of this agent brought are
// everybody's, as upstream's NeverVerifyPreloadedImages.
//
// Tested with a fake image service in bubbles.
package images
