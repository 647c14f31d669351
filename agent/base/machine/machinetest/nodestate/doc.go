// Package nodestate says in a line what is wrong with nodes, for tests that wait for pods.
//
// Owned here: which conditions of a Node keep pods away. Tested by a table.
package nodestate
