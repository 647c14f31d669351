// Package apiserver is the only door to the store, and the only thing that users,
// controllers and agents talk to: the Kubernetes API over HTTP.
//
// It owns the request chain (authentication, request info, deadline, authorization, audit), routes requests to
// the handlers of apiserver/rest, to discovery and to the Connect services that package server adds, and gives
// the control plane's own controllers a transport without a socket (Server.Transport). Any replica serves any
// request.
//
// Package server builds a Server from a Config and serves it on a TLS listener. Tests drive it as an
// http.Handler over an in-memory log.
package apiserver
