// Package pagetest compares tables of the documentation with what code says, for tests.
//
// It owns the marks around such a table (`<!-- name: begin -->` and `<!-- name: end -->`, on lines of their own). The test of a list calls
// it with the table that the list makes, and -update writes it. It calls the standard library and go-cmp.
//
// Promises: what is outside of the marks stays as it is. Tested with a page of its own.
package pagetest
