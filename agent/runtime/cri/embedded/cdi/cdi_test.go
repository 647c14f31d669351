package cdi

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	oci "github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
	"tags.cncf.io/container-device-interface/pkg/cdi"
)

func asking(names ...string) *runtimeapi.ContainerConfig {
	config := &runtimeapi.ContainerConfig{Envs: []*runtimeapi.KeyValue{{Key: "A", Value: []byte("pod's")}}}
	for _, name := range names {
		config.CDIDevices = append(config.CDIDevices, &runtimeapi.CDIDevice{Name: name})
	}
	return config
}

// write puts a spec of example.com/gpu with the edits of its device g into a new folder.
func write(t *testing.T, edits string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	text := `{"cdiVersion": "1.1.0", "kind": "example.com/gpu", "containerEdits": {"env": ["B=all"]}, "devices": [
		{"name": "g", "containerEdits": ` + edits + `}, {"name": "h", "containerEdits": {"env": ["H=1"]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "gpu.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWhatASpecSays(t *testing.T) {
	lib := t.TempDir()
	dir := write(t, `{"env": ["A=driver's"], "deviceNodes": [{"path": "/dev/gpu", "hostPath": "/dev/null", "permissions": "r"}, {"path": "/dev/zero"}],
		"mounts": [{"hostPath": "`+lib+`", "containerPath": "/lib/gpu", "options": ["ro", "nosuid", "nodev", "rbind", "rprivate"]}], "additionalGids": [7]}`)
	config := asking("example.com/gpu=g", "example.com/gpu=h")
	got, err := Resolve(config, []string{dir})
	if err != nil {
		t.Fatal(err)
	}
	env := func(key, value string) *runtimeapi.KeyValue {
		return &runtimeapi.KeyValue{Key: key, Value: []byte(value)}
	}
	want := &runtimeapi.ContainerConfig{
		Envs: []*runtimeapi.KeyValue{env("A", "pod's"), env("B", "all"), env("A", "driver's"), env("H", "1")},
		Devices: []*runtimeapi.Device{{ContainerPath: "/dev/gpu", HostPath: "/dev/null", Permissions: "r"},
			{ContainerPath: "/dev/zero", HostPath: "/dev/zero", Permissions: "rwm"}},
		Mounts: []*runtimeapi.Mount{{ContainerPath: "/lib/gpu", HostPath: lib, Readonly: true}},
		Linux:  &runtimeapi.LinuxContainerConfig{SecurityContext: &runtimeapi.LinuxContainerSecurityContext{SupplementalGroups: []int64{7}}},
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if len(config.CDIDevices) != 2 || len(config.Envs) != 1 {
		t.Errorf("the given configuration was changed: %v", config)
	}
	plain := asking()
	if got, err := Resolve(plain, []string{dir}); err != nil || got != plain {
		t.Errorf("%v %v", got, err)
	}
}

func TestWhatIsRefused(t *testing.T) {
	for name, test := range map[string]struct{ edits, device, want string }{
		"hooks":     {`{"hooks": [{"hookName": "createContainer", "path": "/bin/hook"}]}`, "g", "CDI device example.com/gpu=g: the embedded runtime runs no hooks (/bin/hook)"},
		"network":   {`{"netDevices": [{"hostInterfaceName": "ib0", "name": "ib0"}]}`, "g", "moves no network devices (ib0)"},
		"rdt":       {`{"intelRdt": {"closID": "x"}}`, "g", "no Intel RDT"},
		"no node":   {`{"deviceNodes": [{"path": "/dev/there-is-none"}]}`, "g", "device /dev/there-is-none: no such file"},
		"owner":     {`{"deviceNodes": [{"path": "/dev/null", "uid": 7}]}`, "g", "changes no owners"},
		"mode":      {`{"deviceNodes": [{"path": "/dev/null", "fileMode": 256}]}`, "g", "changes no modes"},
		"number":    {`{"deviceNodes": [{"path": "/dev/null", "type": "c", "major": 9, "minor": 9}]}`, "g", "has the number 1:3, not 9:9"},
		"no source": {`{"mounts": [{"hostPath": "/there-is-none", "containerPath": "/x"}]}`, "g", "mount /x: stat /there-is-none"},
		"tmpfs":     {`{"mounts": [{"hostPath": "tmpfs", "containerPath": "/x", "type": "tmpfs"}]}`, "g", "no mounts of type tmpfs"},
		"option":    {`{"mounts": [{"hostPath": "/", "containerPath": "/x", "options": ["noexec"]}]}`, "g", "does not know the option noexec"},
		"unknown":   {`{"env": ["A=1"]}`, "i", "unresolvable CDI devices example.com/gpu=i"},
		"access":    {`{"deviceNodes": [{"path": "/dev/null", "permissions": "rx"}]}`, "g", `invalid permissions "rx"`},
		"bad spec":  {`{"env": 1}`, "g", "unresolvable CDI devices example.com/gpu=g ("},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Resolve(asking("example.com/gpu="+test.device), []string{write(t, test.edits)})
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, not %s", err, test.want)
			}
		})
	}
}

// TestAsTheLibrary gives the same devices to the library, which edits a container of OCI. Each device has what its spec has too: what it
// says itself counts.
func TestAsTheLibrary(t *testing.T) {
	dir, own, other := t.TempDir(), t.TempDir(), t.TempDir()
	text := `{"cdiVersion": "1.1.0", "kind": "example.com/gpu", "containerEdits": {"env": ["WHO=spec", "ONLY=spec"],
		"deviceNodes": [{"path": "/dev/gpu", "hostPath": "/dev/null"}, {"path": "/dev/all", "hostPath": "/dev/zero"}],
		"mounts": [{"hostPath": "` + own + `", "containerPath": "/lib/gpu/own"}, {"hostPath": "` + own + `", "containerPath": "/lib/gpu"}],
		"additionalGids": [7, 0]}, "devices": [
		{"name": "a", "containerEdits": {"env": ["WHO=a"], "deviceNodes": [{"path": "/dev/gpu", "hostPath": "/dev/zero"},
			{"path": "/dev/none", "hostPath": "/dev/full", "permissions": "none"}],
			"mounts": [{"hostPath": "` + other + `", "containerPath": "/lib/gpu"}], "additionalGids": [7, 8]}},
		{"name": "b", "containerEdits": {"env": ["WHO=b"]}}]}`
	if err := os.WriteFile(filepath.Join(dir, "gpu.json"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, names := range [][]string{
		{"example.com/gpu=a"}, {"example.com/gpu=b"}, {"example.com/gpu=a", "example.com/gpu=b"}, {"example.com/gpu=b", "example.com/gpu=a"},
	} {
		t.Run(strings.Join(names, " "), func(t *testing.T) {
			spec := &oci.Spec{Process: &oci.Process{Env: []string{"A=pod's"}}, Mounts: []oci.Mount{{Source: own, Destination: "/lib/gpu"}}}
			if _, err := cache.InjectDevices(spec, names...); err != nil {
				t.Fatal(err)
			}
			config := asking(names...)
			config.Mounts = []*runtimeapi.Mount{{HostPath: own, ContainerPath: "/lib/gpu"}}
			got, err := Resolve(config, []string{dir})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(factsOfOCI(spec), factsOf(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// facts are what a container gets, in the order in which it counts.
type facts struct {
	Variables map[string]string
	Nodes     []string // path, number and access
	Mounts    []string
	Groups    []int64
}

func factsOf(config *runtimeapi.ContainerConfig) facts {
	f := facts{Variables: map[string]string{}, Groups: config.GetLinux().GetSecurityContext().GetSupplementalGroups()}
	for _, e := range config.Envs {
		f.Variables[e.Key] = string(e.Value)
	}
	for _, d := range config.Devices {
		var stat unix.Stat_t
		_ = unix.Stat(d.HostPath, &stat)
		f.Nodes = append(f.Nodes, fmt.Sprintf("%s %d:%d %s", d.ContainerPath, unix.Major(stat.Rdev), unix.Minor(stat.Rdev), d.Permissions))
	}
	for _, m := range config.Mounts {
		f.Mounts = append(f.Mounts, m.HostPath+" "+m.ContainerPath)
	}
	slices.Sort(f.Nodes)
	return f
}

func factsOfOCI(spec *oci.Spec) facts {
	f := facts{Variables: map[string]string{}}
	for _, pair := range spec.Process.Env {
		key, value, _ := strings.Cut(pair, "=")
		f.Variables[key] = value
	}
	access := map[string]string{}
	for _, rule := range spec.Linux.Resources.Devices {
		access[fmt.Sprint(*rule.Major, ":", *rule.Minor)] = rule.Access
	}
	for _, d := range spec.Linux.Devices {
		f.Nodes = append(f.Nodes, fmt.Sprintf("%s %d:%d %s", d.Path, d.Major, d.Minor, access[fmt.Sprint(d.Major, ":", d.Minor)]))
	}
	for _, m := range spec.Mounts {
		f.Mounts = append(f.Mounts, m.Source+" "+m.Destination)
	}
	for _, gid := range spec.Process.User.AdditionalGids {
		f.Groups = append(f.Groups, int64(gid))
	}
	slices.Sort(f.Nodes)
	return f
}
