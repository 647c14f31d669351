package embedded

import (
	"context"
	"errors"
	"net/netip"
	"os"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/net/network"
)

// TestAPodIsNotConnectedBeforeItIsAdmitted: whoever admits it sees its address while nothing can be sent from there yet.
func TestAPodIsNotConnectedBeforeItIsAdmitted(t *testing.T) {
	r := newRuntime(t)
	refusal := errors.New("its rules are not known")
	var asked []netip.Addr
	r.Admit(func(_ context.Context, pod *runtimeapi.PodSandboxConfig, addresses []netip.Addr) error {
		asked = addresses
		if pod.Metadata.Name != "early" || pod.Labels["app"] != "early" {
			t.Errorf("asked about %v", pod)
		}
		if connected, err := network.Connected(r.config.Bridge); err != nil || len(connected) > 0 {
			t.Errorf("connected already: %v %v", connected, err)
		}
		return refusal
	})
	if _, err := r.RunPodSandbox(t.Context(), podConfig(t, "early"), ""); err == nil || !strings.Contains(err.Error(), refusal.Error()) {
		t.Fatalf("not admitted: %v", err)
	}
	if left, _ := os.ReadDir(r.sandboxesDir()); len(left) != 0 || len(asked) != 1 {
		t.Errorf("sandboxes: %v; asked for %v", left, asked)
	}
	r.Admit(func(context.Context, *runtimeapi.PodSandboxConfig, []netip.Addr) error { return nil })
	if _, err := r.RunPodSandbox(t.Context(), podConfig(t, "late"), ""); err != nil {
		t.Error(err)
	}
}
