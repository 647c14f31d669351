// Package controllertest owns the small world in which controllers are tested:
// client-go's fake clientset taught the manners of a real API server that
// controllers depend on, and a fake node agent.
//
// It is called by tests only and calls client-go.
//
// It promises: generated names, uids and creation times are deterministic;
// updates with a stale resourceVersion conflict; spec and status are written
// through their own endpoints; generation moves with spec only; a placed pod is
// deleted in two steps; every write is counted. It must be used inside a
// synctest bubble.
package controllertest
