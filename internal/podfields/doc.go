// Package podfields says what becomes of each field of a pod's spec: nothing is accepted and then silently dropped.
//
// It owns one table ([Table]) with every field of v1.PodSpec and of the types below it. A field is enforced, or refused by
// Setpoint's own agent, or not enforced although the pod runs, or ignored because that does no harm. The agent asks
// it before it starts a pod; the API asks it for the warnings that it adds to its answer (apiserver/kinds/podspec). The API
// refuses nothing because of it: a stock kubelet may do what the own agent does not. It is the one package that both of
// these worlds import, and imports nothing but the types of the API.
//
// It promises: Find is pure, and costs next to nothing for a spec without findings. Tested by a walk over the types: a
// field that the table does not have, or one that it has and upstream has no more, fails the test. docs/compatibility.md
// shows the fields with findings; the test compares.
package podfields
