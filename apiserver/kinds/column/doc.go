// Package column makes the columns of tables that many kinds have: the name, the
// age, a text, a number.
//
// The kinds call it; it calls apiserver/resource and upstream's words for
// durations only. It owns no state. It is tested through the golden tables of the
// kinds.
package column
