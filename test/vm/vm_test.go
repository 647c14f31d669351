package vm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestArchive(t *testing.T) {
	var archive bytes.Buffer
	if err := WriteArchive(&archive, []File{{"modules", 0o040755, nil}, {"init", 0o100755, []byte("12345")}}); err != nil {
		t.Fatal(err)
	}
	header := func(inode, mode, size, name int) string {
		return fmt.Sprintf("070701%08x%08x%08x%08x%08x%08x%08x%032d%08x%08x", inode, mode, 0, 0, 1, 0, size, 0, name, 0)
	}
	want := header(1, 0o040755, 0, 8) + "modules\x00\x00\x00" + header(2, 0o100755, 5, 5) + "init\x00\x00" + "12345\x00\x00\x00" +
		header(0, 0, 0, 11) + "TRAILER!!!\x00\x00\x00\x00"
	if diff := cmp.Diff(want, archive.String()); diff != "" {
		t.Error(diff)
	}
	if archive.Len()%4 != 0 {
		t.Errorf("%d bytes", archive.Len())
	}
}

func TestModulesLoadAfterWhatTheyNeed(t *testing.T) {
	needs := map[string][]string{"ext4": {"jbd2", "mbcache"}, "jbd2": {"crc"}, "wireguard": {"udp_tunnel", "built"}, "overlay": nil}
	all := slices.AppendSeq([]string{"mbcache", "crc", "udp_tunnel"}, maps.Keys(needs))
	o := order{
		seen: map[string]bool{},
		kernel: Kernel{
			BuiltIn: func(name string) bool { return name == "built" },
			Image: func(name string) ([]byte, error) {
				if slices.Contains(all, name) {
					return []byte(name), nil
				}
				return nil, nil
			},
		},
		needs: func(image []byte) ([]string, error) { return needs[string(image)], nil },
	}
	for _, name := range []string{"overlay", "ext4", "crc", "wireguard", "built", "sctp_diag"} {
		if err := o.add(name); err != nil {
			t.Fatal(err)
		}
	}
	var got []string
	for _, module := range o.modules {
		got = append(got, module.Name)
	}
	if diff := cmp.Diff([]string{"overlay", "crc", "jbd2", "mbcache", "ext4", "udp_tunnel", "wireguard"}, got); diff != "" {
		t.Error(diff)
	}
	if err := o.add("veth"); err == nil || !strings.Contains(err.Error(), "no module veth") {
		t.Error(err)
	}
}

func TestWhatAModuleSaysItNeeds(t *testing.T) {
	for info, want := range map[string][]string{
		"license=GPL\x00depends=udp_tunnel,libcurve25519-generic\x00intree=Y\x00": {"udp_tunnel", "libcurve25519_generic"},
		"depends=\x00name=veth\x00": nil,
		"name=veth\x00":             nil,
	} {
		if diff := cmp.Diff(want, named([]byte(info))); diff != "" {
			t.Errorf("%q: %s", info, diff)
		}
	}
	if _, err := dependencies([]byte("no ELF file")); err == nil {
		t.Error("text was read as a module")
	}
	if got := ModuleName("nf-tables.ko.xz"); got != "nf_tables" {
		t.Error(got)
	}
}

func TestPlan(t *testing.T) {
	got, err := ParsePlan("# all\nagent/runtime/userns run=^TestUsers|^TestA skip=Slow since=6.3 groups=v2 lsm=selinux # why\n\nagent\n")
	want := []Run{{"agent/runtime/userns", "^TestUsers|^TestA", "Slow", "6.3", "v2", "selinux"}, {"agent", ".", "", "", "", ""}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Error(diff, err)
	}
	for _, text := range []string{"", "# nothing", "agent TestPods", "agent run=", "agent ran=."} {
		if got, err := ParsePlan(text); err == nil {
			t.Errorf("%q: %v", text, got)
		}
	}
	args := strings.Join(want[0].Args(), " ")
	if !strings.Contains(args, "-test.run=^TestUsers|^TestA -test.skip=Slow") || !strings.Contains(args, "-test.v") {
		t.Error(args)
	}
}

func TestRunsFit(t *testing.T) {
	run := Run{Since: "6.3", Groups: "v2"}
	for release, want := range map[string]bool{"6.1.0-56-amd64\n": false, "6.3": true, "6.3.0": true, "6.12.95+deb12-amd64": true, "5.19": false, "7.0-rc1": true} {
		if got := run.Fits(release, "v2", "apparmor"); got != want {
			t.Errorf("%s: %v", release, got)
		}
	}
	if run.Fits("6.12", "v1", "apparmor") || !(Run{}).Fits("5.12", "hybrid", "apparmor") {
		t.Error("modes of cgroups")
	}
	if labels := (Run{Module: "selinux"}); labels.Fits("6.12", "v2", "apparmor") || !labels.Fits("6.12", "v2", "selinux") || run.Fits("6.12", "v2", "selinux") {
		t.Error("security modules")
	}
}

// TestThePlanNamesPackagesThatAreThere: the plan is read only where qemu is.
func TestThePlanNamesPackagesThatAreThere(t *testing.T) {
	text, err := os.ReadFile("packages.txt")
	if err != nil {
		t.Fatal(err)
	}
	runs, err := ParsePlan(string(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, run := range runs {
		if _, err := os.Stat("../../" + run.Package + "/doc.go"); err != nil {
			t.Error(err)
		}
	}
}

func TestVerdicts(t *testing.T) {
	for name, test := range map[string]struct {
		output, want string
		ok           bool
	}{
		"all is well": {"=== RUN   TestA\n    --- PASS: TestA/one (0.00s)\n--- PASS: TestA (0.01s)\nPASS\n", "1 passed, 0 failed, 0 skipped", true},
		"one fails": {"--- PASS: TestA (0.01s)\n--- FAIL: TestB (0.01s)\n    --- FAIL: TestB/one (0.01s)\nFAIL\n",
			"1 passed, 1 failed, 0 skipped: TestB TestB/one", false},
		"nothing ran":      {"testing: warning: no tests to run\nPASS\n", "0 passed, 0 failed, 0 skipped (no test ran)", false},
		"all were skipped": {"--- SKIP: TestA (0.00s)\nPASS\n", "0 passed, 0 failed, 1 skipped (no test ran)", false},
	} {
		var log bytes.Buffer
		got := Judge(strings.NewReader(test.output), &log)
		if got.OK() != test.ok || got.String() != test.want || log.String() != test.output {
			t.Errorf("%s: %v %q, log %q", name, got.OK(), got, log.String())
		}
	}
	v := Judge(strings.NewReader("--- PASS: TestA (0.01s)\n"), io.Discard)
	v.Err = errors.New("exit status 2")
	if v.OK() || !strings.Contains(v.String(), "exit status 2") {
		t.Errorf("a panic: %v", v)
	}
	if v := Judge(strings.NewReader(strings.Repeat("x", lineLimit+1)), io.Discard); v.Err == nil {
		t.Error("a line without end passed")
	}
}
