package apparmor

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// newHost is a machine with AppArmor, two profiles and a parser that keeps what it reads.
func newHost(t *testing.T) (h *Host, read string) {
	t.Helper()
	dir := t.TempDir()
	read = filepath.Join(dir, "read")
	h = &Host{enabledFile: filepath.Join(dir, "enabled"), policyDir: dir, parsers: []string{filepath.Join(dir, "none"), filepath.Join(dir, "parser")}}
	write(t, h.enabledFile, "Y\n", 0o644)
	write(t, filepath.Join(dir, "profiles"), "strict (enforce)\nmy own profile (complain)\n", 0o644)
	write(t, h.parsers[1], "#!/bin/sh\necho \"$@\" >>"+read+"\ncat >>"+read+"\n", 0o755)
	return h, read
}

func write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

type wishes = runtimeapi.LinuxContainerSecurityContext

func by(kind runtimeapi.SecurityProfile_ProfileType, name string) *wishes {
	return &wishes{Apparmor: &runtimeapi.SecurityProfile{ProfileType: kind, LocalhostRef: name}}
}

func privileged(w *wishes) *wishes {
	w.Privileged = true
	return w
}

const (
	byDefault = runtimeapi.SecurityProfile_RuntimeDefault
	local     = runtimeapi.SecurityProfile_Localhost
	none      = runtimeapi.SecurityProfile_Unconfined
)

func TestProfiles(t *testing.T) {
	for name, test := range map[string]struct {
		wishes *wishes
		want   string
		err    error
		off    error // where there is no AppArmor
	}{
		"nothing":                {nil, DefaultProfile, nil, nil},
		"privileged":             {privileged(&wishes{}), "", nil, nil},
		"default":                {by(byDefault, ""), DefaultProfile, nil, ErrNotEnabled},
		"default and privileged": {privileged(by(byDefault, "")), "", nil, ErrNotEnabled},
		"none":                   {by(none, ""), "", nil, nil},
		"the node's":             {by(local, "strict"), "strict", nil, ErrNotEnabled},
		"a prefix":               {by(local, "localhost/my own profile"), "my own profile", nil, ErrNotEnabled},
		"the node's, privileged": {privileged(by(local, "strict")), "strict", nil, ErrNotEnabled},
		"not the node's":         {by(local, "stric"), "stric", ErrNotLoaded, ErrNotEnabled},
		"old, nothing":           {&wishes{ApparmorProfile: ""}, DefaultProfile, nil, nil},
		"old, default":           {&wishes{ApparmorProfile: "runtime/default"}, DefaultProfile, nil, ErrNotEnabled},
		"old, none":              {&wishes{ApparmorProfile: "unconfined"}, "", nil, nil},
		"old, the node's":        {&wishes{ApparmorProfile: "localhost/strict"}, "strict", nil, ErrNotEnabled},
		"old, not the node's":    {&wishes{ApparmorProfile: "localhost/x"}, "x", ErrNotLoaded, ErrNotEnabled},
	} {
		h, _ := newHost(t)
		if got, err := h.ProfileOf(test.wishes); got != test.want || !errors.Is(err, test.err) {
			t.Errorf("%s: %q %v", name, got, err)
		}
		write(t, h.enabledFile, "N\n", 0o644)
		if got, err := h.ProfileOf(test.wishes); got != "" || !errors.Is(err, test.off) {
			t.Errorf("%s, not enabled: %q %v", name, got, err)
		}
	}
}

func TestTheDefaultIsLoadedOnce(t *testing.T) {
	h, read := newHost(t)
	for range 3 {
		if _, err := h.ProfileOf(nil); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(read)
	if want := "--skip-cache --replace\n" + defaultText; string(got) != want || err != nil {
		t.Errorf("the parser got %q %v", got, err)
	}
}

// TestWithoutADefault: a pod that names no profile runs, one that insists does not, and is told why.
func TestWithoutADefault(t *testing.T) {
	h, _ := newHost(t)
	parser := h.parsers[1]
	h.parsers = h.parsers[:1]
	if err := h.Prepare(); err == nil || !strings.Contains(err.Error(), "apparmor_parser") {
		t.Errorf("no parser, at the start: %v", err)
	}
	if got, err := h.ProfileOf(nil); got != "" || err != nil {
		t.Errorf("no parser: %q %v", got, err)
	}
	if _, err := h.ProfileOf(by(byDefault, "")); err == nil || !strings.Contains(err.Error(), "apparmor_parser") {
		t.Errorf("no parser: %v", err)
	}
	h.parsers = []string{parser}
	write(t, parser, "#!/bin/sh\necho no abi\nexit 1\n", 0o755)
	if _, err := h.ProfileOf(by(byDefault, "")); err == nil || !strings.Contains(err.Error(), "no abi") {
		t.Errorf("the parser fails: %v", err)
	}
	write(t, parser, "#!/bin/sh\ncat >/dev/null\n", 0o755)
	if got, err := h.ProfileOf(by(byDefault, "")); got != DefaultProfile || err != nil || h.Prepare() != nil {
		t.Errorf("the parser was mended: %q %v, %v", got, err, h.Prepare())
	}
}

func TestNotEnabledWithoutSecurityfs(t *testing.T) {
	h, _ := newHost(t)
	h.policyDir = filepath.Join(h.policyDir, "elsewhere")
	if h.Enabled() || h.Prepare() != nil {
		t.Error("what profiles there are cannot be seen")
	}
}
