// Package reviews serves SubjectAccessReviews, SelfSubjectReviews, TokenReviews and
// their relatives.
//
// It owns the kinds of authorization.k8s.io and authentication.k8s.io that are
// created and never stored: what is created is the question, what comes back the
// answer. apiserver/rest serves them and apiserver/discovery lists them; server/access
// makes them with the authorizer and the authenticators of the request chain, so
// that an answer is what a request would meet.
//
// Promises: nothing is stored, tokens and answers appear in no log, and messages
// are upstream's.
//
// It is tested with tables; through the request chain in apiserver.
package reviews
