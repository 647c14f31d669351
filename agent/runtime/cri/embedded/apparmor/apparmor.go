package apparmor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// loadTimeMax bounds the parser, which needs less than a second.
const loadTimeMax = 30 * time.Second

var (
	// ErrNotEnabled says that the kernel has no AppArmor, or that this process cannot see it.
	ErrNotEnabled = errors.New("apparmor is not supported: it is not enabled on the host")
	// ErrNotLoaded says that the node has no such profile.
	ErrNotLoaded = errors.New("apparmor profile not found")
)

// Host is AppArmor on one machine. Its zero value is of no use: New makes one.
type Host struct {
	enabledFile string // says Y
	policyDir   string // the security file system's
	parsers     []string

	mu            sync.Mutex
	tried, loaded bool
	err           error // of the last attempt to load the default profile
}

// New returns that of this machine. Nothing is loaded yet; Prepare does that.
func New() *Host {
	return &Host{
		enabledFile: "/sys/module/apparmor/parameters/enabled", policyDir: "/sys/kernel/security/apparmor",
		parsers: []string{"/sbin/apparmor_parser", "/usr/sbin/apparmor_parser"},
	}
}

// Enabled says whether the kernel confines programs, and whether this process can see with which profiles.
func (h *Host) Enabled() bool {
	said, err := os.ReadFile(h.enabledFile)
	if err != nil || !strings.HasPrefix(string(said), "Y") {
		return false
	}
	_, err = os.Stat(h.policyDir)
	return err == nil
}

// Prepare loads the default profile if the kernel has AppArmor. If that failed it says why, each time, and containers that name no profile
// run without one.
func (h *Host) Prepare() error {
	if !h.Enabled() {
		return nil
	}
	return h.loadDefault(false)
}

// ProfileOf returns the name of the profile under which a container is to run; "" is none. A privileged one has none unless it names
// one of the node's.
func (h *Host) ProfileOf(security *runtimeapi.LinuxContainerSecurityContext) (string, error) {
	wish := wishOf(security)
	switch kind := wish.GetProfileType(); {
	case kind == runtimeapi.SecurityProfile_Unconfined:
		return "", nil
	case wish == nil && (security.GetPrivileged() || !h.Enabled() || h.Prepare() != nil):
		return "", nil
	case wish == nil:
		return DefaultProfile, nil
	case !h.Enabled():
		return "", ErrNotEnabled
	case kind == runtimeapi.SecurityProfile_Localhost:
		return wish.LocalhostRef, h.find(wish.LocalhostRef)
	case security.GetPrivileged():
		return "", nil
	}
	return DefaultProfile, h.loadDefault(true)
}

// wishOf is nil if the container names no profile. CRI's older field has "runtime/default", "unconfined" or "localhost/NAME".
func wishOf(security *runtimeapi.LinuxContainerSecurityContext) *runtimeapi.SecurityProfile {
	const local = "localhost/"
	if profile := security.GetApparmor(); profile != nil {
		name := strings.TrimPrefix(profile.GetLocalhostRef(), local)
		return &runtimeapi.SecurityProfile{ProfileType: profile.GetProfileType(), LocalhostRef: name}
	}
	switch old := security.GetApparmorProfile(); { //nolint:staticcheck // callers of an older CRI know only this one
	case old == "":
		return nil
	case old == "unconfined":
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Unconfined}
	case strings.HasPrefix(old, local):
		return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_Localhost, LocalhostRef: old[len(local):]}
	}
	return &runtimeapi.SecurityProfile{ProfileType: runtimeapi.SecurityProfile_RuntimeDefault}
}

// find looks for a profile among those that the kernel has: a line for each, such as "name (enforce)".
func (h *Host) find(name string) error {
	file, err := os.Open(filepath.Join(h.policyDir, "profiles"))
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		// The last space is before the mode: names may have some.
		if i := strings.LastIndexByte(lines.Text(), ' '); i >= 0 && lines.Text()[:i] == name {
			return nil
		}
	}
	if err := lines.Err(); err != nil {
		return err
	}
	return fmt.Errorf("%w %s", ErrNotLoaded, name)
}

// loadDefault loads the default profile once, in place of what an earlier version has loaded. What failed is tried again if a
// container insists.
func (h *Host) loadDefault(again bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.loaded || h.tried && !again {
		return h.err
	}
	h.tried = true
	h.err = h.load()
	h.loaded = h.err == nil
	return h.err
}

func (h *Host) load() error {
	parser, err := h.parser()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), loadTimeMax)
	defer cancel()
	command := exec.CommandContext(ctx, parser, "--skip-cache", "--replace")
	command.Stdin = strings.NewReader(defaultText)
	if said, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("load the AppArmor profile %s: %s: %w", DefaultProfile, strings.TrimSpace(string(said)), err)
	}
	return nil
}

func (h *Host) parser() (string, error) {
	for _, path := range h.parsers {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("load the AppArmor profile %s: the node has no apparmor_parser, which comes with its distribution's package apparmor",
		DefaultProfile)
}
