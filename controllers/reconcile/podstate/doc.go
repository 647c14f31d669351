// Package podstate owns what a pod's status means to a control loop: active, ready,
// available, and since when.
//
// It calls nothing but the API types. All of it is pure, so it is tested with
// tables.
package podstate
