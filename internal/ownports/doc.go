// Package ownports says which ports of a machine are the cluster's own, so that no user's object is served there.
//
// Called by: controllers/loadbalancer and agent/router/gateway. It may call: nothing.
//
// Promises: nothing but a list. Tested by those that refuse its ports.
package ownports
