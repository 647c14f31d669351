// Package ingress tells what comes of Ingresses whose class is ours: at which addresses they are served, and what in them is not.
//
// It reads Ingresses, IngressClasses, Services and Nodes, and the Secrets of certificates from the API. It writes status.loadBalancer of
// these Ingresses, which no other loop owns, their events, and the IngressClass "setpoint", as the default, when a node serves Ingresses
// and there is none of that name. agent/net/router serves, by the table that is built here too.
//
// Promises: an event of a problem comes once for as long as the problem stays, whatever the number of nodes. Of Ingresses of other classes
// nothing is touched. A class that somebody has changed is left as it is.
//
// Tested in bubbles with reconciletest, and its table in agent/net/router/table.
package ingress
