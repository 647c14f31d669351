// Package firstroutes is the admission plugin that keeps an older Gateway, ListenerSet, route or Ingress from taking a host or a port that
// a younger object of another namespace has.
//
// The Gateway API lets the oldest win, and an object tells nobody when its hostnames were written. So whoever keeps an old object could
// change it to claim what others have by now. A change that would do so is refused, in the words of apiserver/admission/firstclaims, which
// judges Services and Ingresses among themselves. A new object is the youngest, and is told by conditions what it does not get.
//
// It owns the two worlds that are compared, before the change and after it; agent/net/router/gateway owns who has what in each.
// Certificates are taken for good: whoever has none yet keeps his host, too. It reads what this replica has, and waits until caches are
// filled; two changes of one moment are not compared. Administrators and servers pass. Namespaces' labels and GatewayClasses are theirs, so
// changes of them are not judged. Tested with tables, and by the script firstclaims.
package firstroutes
