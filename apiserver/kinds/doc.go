// Package kinds is the list of kinds that the API serves: one package below it for
// each API group, one line for each group in groups, one line for each kind in the
// group's Kinds.
//
// It owns the list and the scheme made of it; the groups own what is particular to
// a kind: defaults, what the server sets on a write, validation, table columns,
// selectable fields, subresources. Storage, rest, discovery and admission read the
// list; nobody else does. All of it may call apiserver/resource, the packages
// below and the published Kubernetes libraries only.
//
// It promises: every function is pure (the time comes as an argument), changes
// nothing but the object it is handed for changing, and never fails on an object
// that decoded. Defaults are idempotent. Validation says what is wrong in the
// words of Kubernetes, with the same field paths, because people search for them.
// The metadata is not judged here: rest does that for all kinds, with the kind's
// ValidateName.
//
// What groups share: podspec is what a pod's spec is, for pods and templates
// alike; workload is what makes pods from a template; rule is what a single value
// must be; column makes table columns; kindstest helps their tests.
//
// A new kind is one file in its group's package, one line in that package's Kinds,
// and one folder in its testdata; a new group is one package and one line. The
// generic test walks All: round trip of the upstream fixtures in JSON and
// protobuf, idempotent defaults, field labels. Each group compares golden rows
// and messages (go test -update rewrites the files; read the difference).
package kinds
