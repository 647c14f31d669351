// Package zpages serves /statusz and /flagz of a part of a cluster, by upstream's library (k8s.io/apiserver/pkg/server/statusz and flagz),
// in its text, JSON, YAML and CBOR.
//
// It owns nothing. Called by: the commands, whose flags it shows; agents, which may not import that library, are given a [Page] to
// mount; server, for the API. It promises that a flag marked with [Classified] shows no value. Tested by asking for the pages.
package zpages
