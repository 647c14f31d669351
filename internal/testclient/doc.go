// Package testclient is what a test asks of a cluster through its API: objects by names as kubectl's, conditions, waiting, CRDs and
// webhooks, and programs under test.
//
// It owns the names of objects, the conditions, how long is waited, and what is said when something does not come to be. setpointtest
// and setpointtest/beside call it, so that a test means the same with both. It calls client-go, and nothing of Setpoint but
// internal/freeport and internal/trust, for the certificate of webhooks: it does not link a control plane (TestLight).
//
// Promises: errors are sentences that say what to do, for the line of the caller. Nothing outlives a call but what it returns.
//
// Tested by setpointtest and setpointtest/beside, whose methods these are.
package testclient
