// Command setpoint-shim is the embedded runtime's helper as an executable of its own: the same shim, container init
// and exec helper that the main executable contains, with a tenth of its size. Config.ShimExecutable names it; without
// it the main executable re-executes itself, which costs each pod some megabytes and milliseconds more.
package main

import (
	"fmt"
	"os"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/shim"
)

func main() {
	shim.Dispatch()
	fmt.Fprintln(os.Stderr, "setpoint-shim is started by the agent, under the names of its roles")
	os.Exit(2)
}
