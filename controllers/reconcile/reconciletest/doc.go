// Package reconciletest is the test environment of controllers: client-go's fake clientset, extended by
// behaviour of a real API server that controllers depend on, and a fake node agent.
//
// It promises: generated names, uids and creation times are deterministic;
// updates with a stale resourceVersion conflict; spec and status are written
// through their own endpoints; generation moves with spec only; a placed pod is
// deleted in two steps; every write is counted, and those that changed
// anything can be told from the others; an informer misses no deletion,
// however late its watch begins. Faults are asked for: writes are refused or
// lose their answers (Intercept), informers see the past (Hold, Release), lose
// events (Break) or begin anew (NewCaches). It must be used inside a
// synctest bubble.
//
// Tests: what a watch tells after its list, which writes are changes, and
// each fault.
package reconciletest
