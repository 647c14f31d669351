// Package leader connects the store's leadership with the controllers: Run turns a stream of leadership changes
// into contexts that end with leadership, and Publish shows in two Leases which server runs the control loops.
//
// Package server/term calls it; it calls client-go only.
//
// It promises: act never runs twice at once, runs again for every new term, and
// Run returns after the last act has. The Leases display leadership, they do not
// grant it: the fence that travels with each write does, so editing them
// changes nothing.
//
// Writes: Leases kube-system/kube-controller-manager and
// kube-system/kube-scheduler, all of their spec.
//
// Tests run in synctest bubbles, Publish over client-go's fake clientset.
package leader
