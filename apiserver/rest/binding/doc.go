// Package binding judges bindings: which pods may get a node, and what a pod is that has got one.
//
// It owns: the rules of pods/binding.
//
// Promises: Apply gives a pod a node once, and changes nothing of a pod that it refuses. Errors are upstream's. Nothing is
// kept between calls.
//
// Tested by what both ways to bind answer, in package apiserver.
package binding
