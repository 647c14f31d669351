// Package flowschema keeps the status of FlowSchemas: the condition Dangling says that the priority level of a
// schema does not exist, so the schema classifies nothing.
//
// The servers themselves classify by the objects (apiserver/flowcontrol); in upstream each of them writes this
// status.
//
// Reads: FlowSchemas, PriorityLevelConfigurations. Writes: FlowSchemas (status).
// Owns: the condition Dangling.
//
// It promises: the condition follows the objects; nothing is written when nothing has changed.
//
// Tests run in synctest bubbles over client-go's fake clientset.
package flowschema
