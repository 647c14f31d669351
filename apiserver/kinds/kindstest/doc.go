// Package kindstest helps the tests of the groups of kinds: golden files, and
// validation errors as clients see them.
//
// Tests below apiserver/kinds call it, nothing else. Golden rewrites its files
// with go test -update; read the difference: golden rows and messages are what
// people see.
package kindstest
