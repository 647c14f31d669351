// Package auditlog is the audit log. A policy (audit.k8s.io/v1) says which requests are recorded, and how much
// of each.
//
// The root package and package server make a Log from a Config; the request chain hands it every request (Sink,
// Policy), with upstream's filter and evaluation of policies. Without a policy of the administrator's its own
// applies (policy.yaml): metadata of everything but noise, no bodies, so that no secret is ever in it.
//
// Each text of an event has at most textBytesMax bytes, whatever a client sends as a name, a header or a
// query; a mark says how long it was.
//
// No request waits for the log. Events are encoded at once, wait in a buffer of bufferLimit bytes, and Run
// writes them. When the disk stalls or fails and the buffer is full, the API goes on and events are lost: an
// error in the server's own log says how many, and so does the metric setpoint_audit_events_lost_total. An
// orderly stop writes what waits.
//
// It calls internal/clip. Tests write to small writers that block or fail.
package auditlog
