package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// endPods ends a cluster that may not have come to the end of its story, with the
// containers of its node: they outlive the agent, and nobody would find them once the
// data are gone. A cluster that has ended is started once more for that.
func endPods(data string, p *process) error {
	defer func() { p.kill() }()
	sandboxes := filepath.Join(data, "runtime", "sandboxes")
	if left, _ := os.ReadDir(sandboxes); len(left) == 0 { // or no node with containers
		return nil
	}
	select {
	case <-p.ended:
		again, err := start(data, "Setpoint is ready", nil, "setpoint", "dev", "--port", "0", "--data-dir", data)
		if err != nil {
			return err
		}
		p = again
	default:
	}
	out, err := exec.Command(program("setpoint"), "kubectl", "--kubeconfig", filepath.Join(data, "admin.kubeconfig"),
		"delete", "pods", "--all", "--all-namespaces", "--grace-period=1", "--timeout="+stopTimeout.String()).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	if err := p.stop(); err != nil {
		return err
	}
	left, err := os.ReadDir(sandboxes)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("%d in %s", len(left), sandboxes)
	}
	return err
}
