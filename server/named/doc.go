// Package named finds the object that somebody means by a kind's name, and whether they may get it.
//
// It owns what a question of `setpoint why` and `setpoint history` names, in kubectl's words, and the tables of all kinds, custom ones
// included. It changes nothing and keeps nothing.
//
// Promises: built-in kinds come first, in their order; a refusal has upstream's words and says nothing of whether there is such an object.
//
// Tested through packages server/why and server/past.
package named
