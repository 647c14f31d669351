// Package podspec says what a pod's spec is, in a pod and in the template of a
// workload: its defaults, its validation, its warnings. One file per concept.
//
// The kinds call it; it calls rule and the published Kubernetes libraries. Every
// function is pure, and changes nothing but what the Default functions are handed.
// What differs between a new pod, an update of a pod and a template stays with
// the kinds. It is tested there by tables (what clients see) and golden files,
// here by what is easier to see at close range.
package podspec
