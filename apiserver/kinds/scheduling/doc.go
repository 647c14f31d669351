// Package scheduling has the kinds of scheduling.k8s.io/v1: priority classes.
//
// The list of kinds (apiserver/kinds) calls Kinds; whoever makes the objects of a new
// cluster calls SystemPriorityClasses. Functions are pure and behave as the parent
// package promises. Golden files stand in testdata.
package scheduling
