package selinux

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	lib "github.com/opencontainers/selinux/go-selinux"
	"github.com/opencontainers/selinux/go-selinux/label"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/base/machine"
)

var (
	// ErrNoPolicy says why containers have no labels.
	ErrNoPolicy = errors.New("the node's SELinux policy has no labels for containers: install its distribution's container-selinux")
	// ErrInvalid says that the policy has no such label.
	ErrInvalid = errors.New("invalid SELinux label")
)

// unconfinedType is that of containers which are to reach the host. What it may do is the policy's to say: everything, usually.
const unconfinedType = "spc_t"

// Labels are those of a container's processes and files; a pod's are what those of its containers are made from. Both are empty
// where nothing is labelled.
type Labels struct {
	Process, Files string
}

// Host is SELinux on one machine. Its zero value is of no use: New makes one.
type Host struct {
	policy policy

	mu sync.Mutex
	// users says how many pods and containers have a level.
	users map[string]int
}

// policy is what the kernel and the machine's files say.
type policy struct {
	// inKernel says whether there is SELinux at all, enabled whether it labels containers.
	inKernel, enabled func() bool
	// first makes the labels of a new pod, with a level that no other has.
	first func() (Labels, error)
	// check asks the kernel for a label.
	check   func(label string) error
	reserve func(label string) error
	release func(label string)
}

// New returns that of this machine, which is looked at when it is first needed.
func New() *Host {
	h := &Host{users: map[string]int{}, policy: policy{
		inKernel: machine.HasSELinux, first: first, check: lib.SecurityCheckContext, reserve: lib.ReserveLabelV2, release: lib.ReleaseLabel,
	}}
	h.policy.enabled = sync.OnceValue(h.policy.labelsContainers)
	return h
}

func first() (Labels, error) {
	process, files, err := label.InitLabels(nil)
	return Labels{process, files}, err
}

// labelsContainers: a file of the machine says which labels are for containers, and the kernel's policy has them. Some distributions
// have the file without the policy.
func (p *policy) labelsContainers() bool {
	made, err := p.first()
	if err != nil || made.Process == "" || made.Files == "" {
		return false
	}
	p.release(made.Files)
	return p.check(made.Process) == nil && p.check(made.Files) == nil
}

// Enabled says whether containers on this machine have labels.
func (h *Host) Enabled() bool { return h.policy.enabled() }

// Problem is ErrNoPolicy on a kernel with SELinux where containers have no labels.
func (h *Host) Problem() error {
	if h.policy.inKernel() && !h.Enabled() {
		return ErrNoPolicy
	}
	return nil
}

// Pod returns the labels of a new pod, whose level is in use until Release.
func (h *Host) Pod(security *runtimeapi.LinuxSandboxSecurityContext) (Labels, error) {
	if !h.Enabled() {
		return Labels{}, h.refuse(security.GetSelinuxOptions())
	}
	made, err := h.policy.first()
	if err != nil {
		return Labels{}, err
	}
	named, err := h.named(made, security.GetSelinuxOptions())
	if err != nil || named.Files != made.Files {
		h.policy.release(made.Files)
	}
	if err == nil {
		h.Hold(named.Files)
	}
	return named, err
}

// Container returns the labels of a container in a pod that has labels. Its level is in use after Hold.
func (h *Host) Container(pod Labels, security *runtimeapi.LinuxContainerSecurityContext) (Labels, error) {
	if pod.Process == "" {
		return Labels{}, h.refuse(security.GetSelinuxOptions())
	}
	if reachesHost(security) {
		pod.Process = with(pod.Process, &runtimeapi.SELinuxOption{Type: unconfinedType})
	}
	return h.named(pod, security.GetSelinuxOptions())
}

// FilesOf returns the label that the files of such containers have. Without a level it is "": a pod gets one from its runtime.
func (h *Host) FilesOf(wish *runtimeapi.SELinuxOption) (string, error) {
	if wish.GetLevel() == "" || !h.Enabled() {
		return "", nil
	}
	made, err := h.policy.first()
	if err != nil {
		return "", err
	}
	h.policy.release(made.Files)
	named, err := h.named(made, wish)
	return named.Files, err
}

// reachesHost: such a container could do little with what the host labels as its own.
func reachesHost(security *runtimeapi.LinuxContainerSecurityContext) bool {
	shared := security.GetNamespaceOptions()
	return security.GetPrivileged() || shared.GetPid() == runtimeapi.NamespaceMode_NODE || shared.GetIpc() == runtimeapi.NamespaceMode_NODE
}

// refuse returns an error if labels are asked for that mean something: a kernel without SELinux has none.
func (h *Host) refuse(wish *runtimeapi.SELinuxOption) error {
	if h.policy.inKernel() && (wish.GetUser() != "" || wish.GetRole() != "" || wish.GetType() != "" || wish.GetLevel() != "") {
		return ErrNoPolicy
	}
	return nil
}

// named puts what is asked for into labels. Files have no role, and their type does not follow that of processes.
func (h *Host) named(l Labels, wish *runtimeapi.SELinuxOption) (Labels, error) {
	if err := checkWords(wish); err != nil {
		return Labels{}, err
	}
	l.Process = with(l.Process, wish)
	l.Files = with(l.Files, &runtimeapi.SELinuxOption{User: wish.GetUser(), Level: wish.GetLevel()})
	for _, text := range []string{l.Process, l.Files} {
		if err := h.policy.check(text); err != nil {
			return Labels{}, fmt.Errorf("%w: the node's policy does not accept %q: %w", ErrInvalid, text, err)
		}
	}
	return l, nil
}

// checkWords keeps each word in its place: the kernel would read a colon as the begin of the next one, and a zero as the end.
func checkWords(wish *runtimeapi.SELinuxOption) error {
	for _, part := range []struct{ name, text, signs string }{
		{"user", wish.GetUser(), "_-."}, {"role", wish.GetRole(), "_-."}, {"type", wish.GetType(), "_-."}, {"level", wish.GetLevel(), "_-.:,"},
	} {
		strange := func(r rune) bool {
			return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(part.signs, r)
		}
		if strings.ContainsFunc(part.text, strange) {
			return fmt.Errorf("%w: %s %q", ErrInvalid, part.name, part.text)
		}
	}
	return nil
}

func with(label string, wish *runtimeapi.SELinuxOption) string {
	parts, err := lib.NewContext(label)
	if err != nil {
		return label // which the kernel will refuse
	}
	for name, text := range map[string]string{
		"user": wish.GetUser(), "role": wish.GetRole(), "type": wish.GetType(), "level": wish.GetLevel(),
	} {
		if text != "" {
			parts[name] = text
		}
	}
	return parts.Get()
}

// Hold notes that one more pod or container has the level of a label.
func (h *Host) Hold(label string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	level := levelOf(label)
	if level == "" {
		return
	}
	h.users[level]++
	_ = h.policy.reserve(label) // which fails if the level is reserved already
}

// Release undoes one Hold; a level that nobody has is free for another pod.
func (h *Host) Release(label string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	level := levelOf(label)
	if h.users[level]--; h.users[level] > 0 {
		return
	}
	delete(h.users, level)
	h.policy.release(label)
}

func levelOf(label string) string {
	parts, _ := lib.NewContext(label) // one that is none has no level
	return parts["level"]
}
