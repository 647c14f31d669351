// Package firstclaims is the admission plugin that keeps an older object from taking what a younger one of another namespace has.
//
// Of several objects that claim one port of the nodes, one external address or one host of Ingresses, the oldest has it, since an object
// tells nobody when its claims were written. So whoever keeps an old object could change it to claim what others have by now. A change that
// would do so is refused: who loses is the oldest that claims it as things are, and not one who claims it in vain. A new object is the
// youngest, and is told by conditions and events what it does not get, as before.
//
// It owns what Services and Ingresses claim in that sense; agent/net/services, agent/net/router/hosts and controllers/loadbalancer
// own who has it. It reads caches, and waits until they are filled; two changes of one moment are not compared. Administrators and
// servers pass. Gateways, ListenerSets and their routes, as who takes a port or a host and as who has it, are judged by server/firstroutes.
// Tested with tables.
package firstclaims
