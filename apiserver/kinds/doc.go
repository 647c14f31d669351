// Package kinds is the list of kinds that the API serves: one file for each, one
// line for each in All.
//
// It owns what is particular to a kind: defaults, what the server sets on a
// write, validation, table columns, selectable fields, subresources. Storage,
// rest, discovery and admission read the list; nobody else does. It may call
// apiserver/resource, its own subpackages and the published Kubernetes libraries only.
//
// It promises: every function is pure (the time comes as an argument), changes
// nothing but the object it is handed for changing, and never fails on an object
// that decoded. Defaults are idempotent. Validation says what is wrong in the
// words of Kubernetes, with the same field paths, because people search for them.
// The metadata is not judged here: rest does that for all kinds, with the kind's
// ValidateName.
//
// What a pod's spec is lives in podspec, for pods and templates alike; what a
// single value must be lives in rule.
//
// A new kind is one file named after it, one line in All, and one folder in
// testdata. The generic test walks All: round trip of the upstream fixtures in
// JSON and protobuf, idempotent defaults, field labels, golden columns and
// messages (go test -update rewrites the golden files; read the difference).
package kinds
