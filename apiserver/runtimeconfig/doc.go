// Package runtimeconfig judges --runtime-config, which turns versions and resources of built-in APIs on and off.
//
// It owns the reading of the flag's keys. Nothing can be turned off or on here: what is served is served, so a value that says so is
// accepted, and all else is told by name. `setpoint server` refuses it; the stand-in for envtest's kube-apiserver only warns of versions
// that are not there, because tests ask for all of them and use few. It calls apiserver/kinds for what is served.
package runtimeconfig
