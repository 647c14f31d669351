// Package certificates has the kinds of certificates.k8s.io/v1: requests for
// certificates, of anybody and of pods, and bundles of trust anchors.
//
// The list of kinds (apiserver/kinds) calls Kinds, nobody else calls anything.
// Functions are pure and behave as the parent package promises; what depends on the
// time is handed it. Who may approve and sign is for admission. Golden files stand in
// testdata, and what needs fresh certificates is tested with tables.
package certificates
