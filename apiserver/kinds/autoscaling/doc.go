// Package autoscaling has the HorizontalPodAutoscaler in its versions v2, which is
// stored, and v1, which knows the utilization of CPUs only and keeps all else in
// annotations.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises. Golden files stand
// in testdata; the generic test of the parent converts both ways.
package autoscaling
