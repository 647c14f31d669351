package embedded

import (
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestContainerRunsLogsAndExits(t *testing.T) {
	p := runPod(t, newRuntime(t), nil)
	id := p.start(containerConfig("say", "3", "hello", "world"))
	full := p.exit(id)
	if full.ExitCode != 3 || full.Reason != "Error" || full.State != runtimeapi.ContainerState_CONTAINER_EXITED {
		t.Errorf("exit %d %s %s", full.ExitCode, full.Reason, full.State)
	}
	if got := p.log(id); got != "hello\nworld\n" {
		t.Errorf("log %q", got)
	}
}
