// Package resource says what a kind of the API is: its names, defaults, rules,
// columns and subresources, as pure functions over the published Go types.
//
// A kind is written once as a Kind[T] in apiserver/kinds and erased to Any, the
// form in which storage, rest and discovery use it. The package holds no state
// and does no I/O; functions of a kind must not keep or change what they were
// not handed for changing. They are tested through the list of kinds: one
// generic test walks it (apiserver/kinds).
package resource
