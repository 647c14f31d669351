// Package authconfig lets users in whom others vouch for: who bears a token of an OpenID
// Connect issuer, and who shows nothing at all, as the administrator configured.
//
// The wiring makes an Authentication from a file of kind AuthenticationConfiguration
// (apiserver.config.k8s.io) or from the classic --oidc- flags, and asks it after
// certificates and the cluster's own tokens. Checking tokens and mapping claims is
// upstream's. Run reads the file again every reloadInterval. What is wrong in it is said
// once, and the former configuration stays in force; issuers that are new replace the
// former ones as soon as they answer, or not at all.
//
// An issuer that does not answer keeps nothing waiting: its tokens are refused until it
// does, and a warning says so. Tests run an issuer in the process, over TLS with a CA of
// its own.
package authconfig
