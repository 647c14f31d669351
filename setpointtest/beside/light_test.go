package beside_test

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestLight: who imports the package links client-go, and of Setpoint nothing that a control plane is made of.
func TestLight(t *testing.T) {
	text, err := exec.CommandContext(t.Context(), "go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	const ours = "github.com/setpoint-io/setpoint/"
	allowed := []string{"internal/clip", "internal/durable", "internal/freeport", "internal/process", "internal/servicerange", "internal/testclient",
		"internal/testlink", "internal/trust", "internal/trust/kubeconfigs", "internal/trust/secretfile", "internal/trust/storagekeys",
		"internal/trust/tokens", "internal/clusterclock", "setpointtest/beside"}
	heavy := []string{"k8s.io/apiserver/", "k8s.io/component-base/", "k8s.io/apiextensions-apiserver/", "k8s.io/kubectl/",
		"github.com/hashicorp/", "google.golang.org/grpc", "connectrpc.com/", "github.com/prometheus/"}
	found := 0
	for imported := range strings.Lines(string(text)) {
		imported = strings.TrimSpace(imported)
		if own, is := strings.CutPrefix(imported, ours); is && !slices.Contains(allowed, own) || imported+"/" == ours {
			t.Errorf("setpointtest/beside links %s: leave what runs clusters to the process beside the test", imported)
		}
		if slices.ContainsFunc(heavy, func(h string) bool { return strings.HasPrefix(imported, h) }) {
			t.Errorf("setpointtest/beside links %s, which an operator does not need", imported)
		}
		found++
	}
	if found < 100 {
		t.Errorf("go list names %d packages", found)
	}
}
