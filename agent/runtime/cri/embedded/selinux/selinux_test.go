package selinux

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// fakePolicy is a kernel with a policy, and the levels that are reserved there.
type fakePolicy struct {
	pods     int
	reserved []string
}

var errKernel = errors.New("write /sys/fs/selinux/context: invalid argument")

// newHost is a machine whose policy has the types of container-selinux. Its first pod has the level s0:c1,c1001.
func newHost() (*Host, *fakePolicy) {
	f := &fakePolicy{}
	yes := func() bool { return true }
	return &Host{users: map[string]int{}, policy: policy{
		inKernel: yes, enabled: yes, first: f.first, reserve: f.reserve,
		release: func(label string) {
			f.reserved = slices.DeleteFunc(f.reserved, func(level string) bool { return level == levelOf(label) })
		},
		check: func(label string) error {
			if strings.Contains(label, "no_such") {
				return errKernel
			}
			return nil
		},
	}}, f
}

func (f *fakePolicy) first() (Labels, error) {
	f.pods++
	level := fmt.Sprintf("s0:c%d,c%d", f.pods, 1000+f.pods)
	f.reserved = append(f.reserved, level)
	return Labels{"system_u:system_r:container_t:" + level, "system_u:object_r:container_file_t:" + level}, nil
}

func (f *fakePolicy) reserve(label string) error {
	if slices.Contains(f.reserved, levelOf(label)) {
		return errors.New("it is reserved")
	}
	f.reserved = append(f.reserved, levelOf(label))
	return nil
}

func (f *fakePolicy) want(t *testing.T, step string, levels ...string) {
	t.Helper()
	if !slices.Equal(f.reserved, levels) {
		t.Errorf("%s: reserved are %q, not %q", step, f.reserved, levels)
	}
}

type options = runtimeapi.SELinuxOption

func container(o *options) *runtimeapi.LinuxContainerSecurityContext {
	return &runtimeapi.LinuxContainerSecurityContext{SelinuxOptions: o}
}

func inHost(o *options, change func(*runtimeapi.NamespaceOption)) *runtimeapi.LinuxContainerSecurityContext {
	c := container(o)
	c.NamespaceOptions = &runtimeapi.NamespaceOption{}
	change(c.NamespaceOptions)
	return c
}

func privileged(o *options) *runtimeapi.LinuxContainerSecurityContext {
	c := container(o)
	c.Privileged = true
	return c
}

func TestLabels(t *testing.T) {
	ofType, everything := &options{Type: "web_t"}, &options{User: "u", Role: "r", Type: "t", Level: "s0:c7,c8"}
	const files = "system_u:object_r:container_file_t:s0:c1,c1001"
	for name, test := range map[string]struct {
		pod            *options
		container      *runtimeapi.LinuxContainerSecurityContext
		process, files string
	}{
		"by default":            {nil, nil, "system_u:system_r:container_t:s0:c1,c1001", files},
		"nothing in particular": {&options{}, container(&options{}), "system_u:system_r:container_t:s0:c1,c1001", files},
		"the pod's level": {&options{Level: "s0:c7,c8"}, container(nil),
			"system_u:system_r:container_t:s0:c7,c8", "system_u:object_r:container_file_t:s0:c7,c8"},
		"the container's level": {&options{Level: "s0:c7,c8"}, container(&options{Level: "s0:c9.c12"}),
			"system_u:system_r:container_t:s0:c9.c12", "system_u:object_r:container_file_t:s0:c9.c12"},
		"a type":                    {nil, container(ofType), "system_u:system_r:web_t:s0:c1,c1001", files},
		"the pod's type":            {ofType, container(&options{Level: "s0"}), "system_u:system_r:web_t:s0", "system_u:object_r:container_file_t:s0"},
		"all of it":                 {nil, container(everything), "u:r:t:s0:c7,c8", "u:object_r:container_file_t:s0:c7,c8"},
		"all of it, of the pod":     {everything, container(nil), "u:r:t:s0:c7,c8", "u:object_r:container_file_t:s0:c7,c8"},
		"privileged":                {nil, privileged(nil), "system_u:system_r:spc_t:s0:c1,c1001", files},
		"privileged, with a type":   {nil, privileged(ofType), "system_u:system_r:web_t:s0:c1,c1001", files},
		"privileged, with a level":  {nil, privileged(&options{Level: "s0"}), "system_u:system_r:spc_t:s0", "system_u:object_r:container_file_t:s0"},
		"in a pod of another type":  {ofType, privileged(nil), "system_u:system_r:spc_t:s0:c1,c1001", files},
		"the host's processes":      {nil, inHost(nil, func(n *runtimeapi.NamespaceOption) { n.Pid = runtimeapi.NamespaceMode_NODE }), "system_u:system_r:spc_t:s0:c1,c1001", files},
		"the host's IPC":            {nil, inHost(nil, func(n *runtimeapi.NamespaceOption) { n.Ipc = runtimeapi.NamespaceMode_NODE }), "system_u:system_r:spc_t:s0:c1,c1001", files},
		"the host's IPC and a type": {nil, inHost(ofType, func(n *runtimeapi.NamespaceOption) { n.Ipc = runtimeapi.NamespaceMode_NODE }), "system_u:system_r:web_t:s0:c1,c1001", files},
		"the host's network":        {nil, inHost(nil, func(n *runtimeapi.NamespaceOption) { n.Network = runtimeapi.NamespaceMode_NODE }), "system_u:system_r:container_t:s0:c1,c1001", files},
	} {
		h, _ := newHost()
		pod, err := h.Pod(&runtimeapi.LinuxSandboxSecurityContext{SelinuxOptions: test.pod})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := h.Container(pod, test.container)
		if want := (Labels{test.process, test.files}); got != want || err != nil {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
}

func TestLabelsThatAreNone(t *testing.T) {
	for name, wish := range map[string]*options{
		"a type that is not there": {Type: "no_such_t"}, "a level that is not there": {Level: "no_such"},
		"another part": {User: "u:r:spc_t"}, "an option": {Level: `s0",fscontext="x`}, "an end": {Type: "t\x00"}, "a line": {Role: "r\n"},
	} {
		h, f := newHost()
		if _, err := h.Pod(&runtimeapi.LinuxSandboxSecurityContext{SelinuxOptions: wish}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
		f.want(t, name)
		pod, err := h.Pod(nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Container(pod, container(wish)); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestWithoutAPolicyForContainers: nothing has a label, and who asks for one is refused where labels mean something.
func TestWithoutAPolicyForContainers(t *testing.T) {
	for _, inKernel := range []bool{true, false} {
		h, _ := newHost()
		h.policy.inKernel, h.policy.enabled = func() bool { return inKernel }, func() bool { return false }
		pod, err := h.Pod(nil)
		if pod != (Labels{}) || err != nil {
			t.Errorf("nothing is asked for: %v %v", pod, err)
		}
		if got, err := h.Container(pod, privileged(&options{})); got != (Labels{}) || err != nil {
			t.Errorf("nothing is asked for: %v %v", got, err)
		}
		h.Hold(pod.Files)
		h.Release(pod.Files)
		_, ofPod := h.Pod(&runtimeapi.LinuxSandboxSecurityContext{SelinuxOptions: &options{Level: "s0"}})
		_, ofContainer := h.Container(pod, container(&options{User: "u"}))
		if errors.Is(h.Problem(), ErrNoPolicy) != inKernel || errors.Is(ofPod, ErrNoPolicy) != inKernel || errors.Is(ofContainer, ErrNoPolicy) != inKernel {
			t.Errorf("in the kernel %v: %v, %v", inKernel, ofPod, ofContainer)
		}
	}
}

// TestWhetherThereIsAPolicyForContainers: Debian's file names labels that its policy lacks.
func TestWhetherThereIsAPolicyForContainers(t *testing.T) {
	const process, files = "system_u:system_r:container_t:s0:c1,c2", "system_u:object_r:container_file_t:s0:c1,c2"
	for name, test := range map[string]struct {
		first Labels
		want  bool
	}{
		"a policy": {Labels{process, files}, true}, "no file": {Labels{}, false}, "no label of processes": {Labels{"", files}, false},
		"unknown": {Labels{"system_u:system_r:no_such_t:s0", files}, false}, "files unknown": {Labels{process, "system_u:object_r:no_such_t:s0"}, false},
	} {
		h, f := newHost()
		h.policy.first = func() (Labels, error) { return test.first, f.reserve(test.first.Files) }
		if got := h.policy.labelsContainers(); got != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// TestAPodWithoutLabels, which an earlier agent has made: none of its containers can have one.
func TestAPodWithoutLabels(t *testing.T) {
	h, _ := newHost()
	if got, err := h.Container(Labels{}, nil); got != (Labels{}) || err != nil {
		t.Errorf("%v %v", got, err)
	}
	if _, err := h.Container(Labels{}, container(&options{Level: "s0"})); !errors.Is(err, ErrNoPolicy) {
		t.Error(err)
	}
}

// TestLevels are reserved until the last who has them is gone, and again after a restart.
func TestLevels(t *testing.T) {
	h, f := newHost()
	pod, err := h.Pod(nil)
	if err != nil {
		t.Fatal(err)
	}
	f.want(t, "a pod", "s0:c1,c1001")
	own, err := h.Container(pod, container(&options{Level: "s0:c7,c8"}))
	if err != nil {
		t.Fatal(err)
	}
	h.Hold(pod.Files)
	h.Hold(own.Files)
	f.want(t, "two containers", "s0:c1,c1001", "s0:c7,c8")
	other, err := h.Pod(&runtimeapi.LinuxSandboxSecurityContext{SelinuxOptions: &options{Level: "s0:c7,c8"}})
	if err != nil {
		t.Fatal(err)
	}
	f.want(t, "another pod with that level", "s0:c1,c1001", "s0:c7,c8")
	h.Release(own.Files)
	h.Release(pod.Files)
	f.want(t, "one container each is left", "s0:c1,c1001", "s0:c7,c8")
	h.Release(other.Files)
	h.Release(pod.Files)
	f.want(t, "all are gone")
	h.Hold(pod.Files)
	f.want(t, "one that was found at the start", "s0:c1,c1001")
}
