// Package authconfig authenticates users with tokens of OpenID Connect issuers, and anonymous requests, as the
// administrator configured.
//
// Package server/access makes an Authentication from a file of kind AuthenticationConfiguration
// (apiserver.config.k8s.io) or from the classic --oidc- flags, and asks it after certificates and the cluster's
// own tokens. Checking tokens and mapping claims is upstream's. Run reads the file again every reloadInterval.
// What is wrong in it is said once, and the former configuration stays in force; issuers that are new replace
// the former ones as soon as they answer, or not at all.
//
// Nothing waits for an issuer that does not answer: its tokens are refused until it does, and a warning says
// so. Tests run an issuer in the process, over TLS with a CA of its own.
package authconfig
