// Package workload has what the kinds share that make pods from a template:
// judging the template and the selector, and printing them.
//
// The kinds of apps, batch and core call it; it calls podspec and the published
// validation library. It owns no state. Errors carry the field path they are
// handed and speak the words of Kubernetes. It is tested through the golden files
// and tables of those kinds.
package workload
