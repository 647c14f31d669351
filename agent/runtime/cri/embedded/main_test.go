package embedded

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/setpoint-io/setpoint/agent/net/network/networktest"
	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/demo"
)

// TestMain makes this executable everything at once: shim, container init, exec helper, the image's programs, and the
// tests. The tests run in a network and a mount namespace of their own, so that whatever they leave ends with them.
func TestMain(m *testing.M) {
	ReexecMain()
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "demo":
			os.Exit(demo.Main(os.Args[2:]))
		case "workload":
			os.Exit(workload(os.Args[2:]))
		}
	}
	networktest.Enter(unix.CLONE_NEWNET | unix.CLONE_NEWNS)
	os.Exit(m.Run())
}
