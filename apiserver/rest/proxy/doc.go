// Package proxy serves the proxy subresources of nodes, pods and Services: it finds the address and passes on
// requests of any method, path and protocol.
//
// It owns which addresses a client may be led to, and the right that a stream takes beyond
// its request. apiserver/rest makes the proxy subresources of it, and asks MayCreate for
// exec, attach and port-forward too. It reads tables and nothing else of the store. It is
// tested through apiserver, by requests as clients send them.
package proxy
