// Package proxy finds what stands behind nodes, pods and Services, and passes requests of
// any method, path and protocol on to it.
//
// It owns which addresses a client may be led to, and the right that a stream takes beyond
// its request. apiserver/rest makes the proxy subresources of it, and asks MayCreate for
// exec, attach and port-forward too. It reads tables and nothing else of the store. It is
// tested through apiserver, by requests as clients send them.
package proxy
