// Package zpages serves /statusz and /flagz of a part of a cluster, by upstream's library (k8s.io/apiserver/pkg/server/statusz and flagz),
// in its text, JSON, YAML and CBOR.
//
// It owns nothing. Commands show their flags by it, and servers theirs in the API; agents, which may not import that library, are given
// a [Page] to mount. It promises that a flag marked with [Classified] shows no value. Tested by asking for the pages.
package zpages
