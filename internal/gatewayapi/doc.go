// Package gatewayapi says which kinds of the Gateway API are served, and follows their objects.
//
// It owns the names of the kinds and of the controller, the rule of ReferenceGrants, informers that begin when a kind is served and not
// before (its CustomResourceDefinitions may come later, or never), and those of single Secrets and ConfigMaps. Nodes' routers serve
// them, a controller writes their status, and servers tell which Secrets and ConfigMaps nodes may read. It may call client-go and
// internal/shares.
//
// Promises: objects are handed out typed, and must not be changed. A kind that is not served has no objects. One that cannot be read as
// its type is handed out with its metadata only, and told. Run blocks until its goroutines have ended.
//
// Tested over client-go's fake dynamic client, in a bubble.
package gatewayapi
