// Package rotations is the admission plugin that guards how far rotations of keys are (internal/rotation).
//
// It owns one rule: servers alone write that ConfigMap, by order of `setpoint rotate`. Every other object passes.
//
// Tested with a table.
package rotations
