// Package serviceendpoints owns what the loops share that keep where a Service's connections go: which Services a
// change of a pod concerns (PodChanged), which slices belong to a Service and which of their changes are somebody
// else's (Slices), and the canonical form of the subsets of Endpoints (Packer, Repack).
//
// It promises: subsets are grouped and ordered exactly as upstream's controllers do, so that objects that either
// wrote are the same to the other; the order does not depend on that of the input.
//
// Repack is compared with a simple model on generated subsets. The loops' own tests cover Slices and
// PodChanged.
package serviceendpoints
