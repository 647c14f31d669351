// Package demoimage builds the demo images from the running executable, so that the first minute needs no network.
//
// It owns nothing: [Build] describes three images (v1, v2 and broken) that share one layer, a hard link of the
// executable as /setpoint. The embedded runtime calls it when it opens; it may call the image store's types. It
// promises not to copy the executable when a hard link will do. Tested with the image store.
package demoimage
