//go:build shimbinary

package shimbinary

import _ "embed" // for the directive below

//go:embed setpoint-shim.bin
var executable []byte

// Bytes is the helper executable.
func Bytes() []byte { return executable }
