//go:build ordered

package replicas_test

import "runtime"

func init() { setOrder = runtime.SetOrder }
