//go:build ordered

package replicas_test

import "runtime"

// setOrder makes the runtime's own choices those of a seed. Package ordered adds it to the runtime.
var setOrder = runtime.SetOrder
