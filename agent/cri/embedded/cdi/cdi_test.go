package cdi

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
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
		Envs: []*runtimeapi.KeyValue{env("A", "pod's"), env("A", "driver's"), env("B", "all"), env("H", "1")},
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
