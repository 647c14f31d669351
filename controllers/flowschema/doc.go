// Package flowschema says in the status of each FlowSchema whether its priority level
// is there: a schema whose level is missing classifies nothing.
//
// It is called by package controllers, once for each leadership term, and calls
// client-go and reconcile. The servers themselves classify by the objects
// (apiserver/fairness); in upstream each of them writes this status.
//
// Reads: FlowSchemas, PriorityLevelConfigurations. Writes: FlowSchemas (status).
// Owns: the condition Dangling.
//
// It promises: the condition follows the objects; on an unchanged world nothing is written.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package flowschema
