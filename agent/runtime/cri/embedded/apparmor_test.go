package embedded

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/runtime/cri/embedded/apparmor"
)

const (
	// profileRead is where a process of the container reads what confines it.
	profileRead = "read=/proc/self/attr/apparmor/current"
	enforced    = apparmor.DefaultProfile + " (enforce)"
)

func confinedBy(kind runtimeapi.SecurityProfile_ProfileType, name string, args ...string) *runtimeapi.ContainerConfig {
	config := containerConfig(args...)
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{
		Apparmor: &runtimeapi.SecurityProfile{ProfileType: kind, LocalhostRef: name},
	}
	return config
}

// TestAppArmorIsRefused to who insists, where there is none, or no program that loads the default profile.
func TestAppArmorIsRefused(t *testing.T) {
	r := newRuntime(t)
	p := runPod(t, r, nil)
	insists := confinedBy(runtimeapi.SecurityProfile_RuntimeDefault, "", "say", "0")
	_, why := r.apparmor.ProfileOf(insists.Linux.SecurityContext)
	if _, err := r.CreateContainer(t.Context(), p.id, insists, p.config); (err == nil) != (why == nil) || why != nil && !strings.Contains(err.Error(), why.Error()) {
		t.Errorf("want %v, got %v", why, err)
	}
	missing := confinedBy(runtimeapi.SecurityProfile_Localhost, "no-such-profile", "say", "0")
	if _, err := r.CreateContainer(t.Context(), p.id, missing, p.config); err == nil {
		t.Error("a container was made without its profile")
	}
	if full := p.exit(p.start(containerConfig("say", "0"))); full.ExitCode != 0 {
		t.Errorf("without a wish: %v", full)
	}
	if r.Can().AppArmor != r.apparmor.Enabled() {
		t.Errorf("the runtime can: %v", r.Can().AppArmor)
	}
}

// TestAppArmorConfines real containers. `make vm` fails if it is skipped there.
func TestAppArmorConfines(t *testing.T) {
	r := newRuntime(t)
	insists := confinedBy(runtimeapi.SecurityProfile_RuntimeDefault, "").Linux.SecurityContext
	if _, err := r.apparmor.ProfileOf(insists); err != nil {
		t.Skip(err)
	}
	t.Run("by default", func(t *testing.T) { confinedByDefault(t, r) })
	t.Run("as asked", func(t *testing.T) { confinedAsAsked(t, r) })
	t.Run("in other namespaces", func(t *testing.T) { confinedInOtherNamespaces(t, r) })
}

// confinesAll says whether a container that names no profile has one. Other denials are then seen first, and a process is not
// sent the signal of its parent's death.
func confinesAll(t *testing.T, r *Runtime) bool {
	t.Helper()
	profile, err := r.apparmor.ProfileOf(nil)
	if err != nil {
		t.Fatal(err)
	}
	return profile != ""
}

// confinedByDefault: a container that names no profile, and its commands, cannot do what the profile forbids, whatever their rights.
func confinedByDefault(t *testing.T, r *Runtime) {
	p := runPod(t, r, nil)
	config := containerConfig("mount", profileRead, "write=/file")
	config.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Capabilities: &runtimeapi.Capability{AddCapabilities: []string{"ALL"}}}
	got := p.facts(config)
	want := map[string]string{"mount": "permission denied", profileRead: enforced, "write=/file": "<nil>"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	id := p.start(containerConfig("sleep"))
	if out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", profileRead}, patience); err != nil ||
		!strings.Contains(string(out), enforced) {
		t.Errorf("a command: %s %v", out, err)
	}
	if err := r.StopContainer(t.Context(), id, 0); err != nil {
		t.Error(err)
	}
}

func confinedAsAsked(t *testing.T, r *Runtime) {
	p := runPod(t, r, nil)
	privileged := containerConfig("mount", profileRead)
	privileged.Linux.SecurityContext = &runtimeapi.LinuxContainerSecurityContext{Privileged: true}
	for name, test := range map[string]struct {
		config *runtimeapi.ContainerConfig
		want   string
	}{
		"unconfined": {confinedBy(runtimeapi.SecurityProfile_Unconfined, "", profileRead), "unconfined"},
		"default":    {confinedBy(runtimeapi.SecurityProfile_RuntimeDefault, "", profileRead), enforced},
		"the node's": {confinedBy(runtimeapi.SecurityProfile_Localhost, apparmor.DefaultProfile, profileRead), enforced},
		"privileged": {privileged, "unconfined"},
	} {
		if got := p.facts(test.config)[profileRead]; got != test.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	missing := confinedBy(runtimeapi.SecurityProfile_Localhost, "no-such-profile", profileRead)
	if _, err := r.CreateContainer(t.Context(), p.id, missing, p.config); err == nil || !strings.Contains(err.Error(), "apparmor profile not found no-such-profile") {
		t.Errorf("a profile that is not loaded: %v", err)
	}
}

// confinedInOtherNamespaces: where another process than the one that boots becomes the container.
func confinedInOtherNamespaces(t *testing.T, r *Runtime) {
	config := inSharedPod(containerConfig(profileRead))
	if got := sharedPod(t, r).facts(config)[profileRead]; got != enforced {
		t.Errorf("in a shared PID namespace: %q", got)
	}
	if !r.hasUsers() {
		return
	}
	p := runPod(t, r, ownUsers)
	if got := p.facts(containerConfig(profileRead))[profileRead]; got != enforced {
		t.Errorf("in a user namespace: %q", got)
	}
	id := p.start(containerConfig("sleep"))
	if out, _, err := r.ExecSync(t.Context(), id, []string{"/setpoint", "workload", "look", profileRead}, patience); err != nil ||
		!strings.Contains(string(out), enforced) {
		t.Errorf("a command in a user namespace: %s %v", out, err)
	}
}
