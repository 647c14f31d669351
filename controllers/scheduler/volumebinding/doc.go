// Package volumebinding gives the claims of a pod that has a node their volumes, as the extension point PreBind of upstream's plugin
// VolumeBinding does.
//
// It owns, of claims that wait for their first consumer, the claimRef of the volume that they get, or their annotation
// volume.kubernetes.io/selected-node. The scheduler chooses (package plugin, VolumeChoice) and calls the Writer before it binds the
// pod; the controller of volumes completes the binding.
//
// It promises: a claim that another pod or volume has taken meanwhile is an error, not a wait; what was written stays, and the next attempt
// goes on from there. It waits with the caches, and asks no server.
//
// Tested with the worlds of package scheduler (volumes_test.go there).
package volumebinding
