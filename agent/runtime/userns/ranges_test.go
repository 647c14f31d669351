package userns

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

const unit = UsersUnit

func config(t *testing.T, dir string, users Range, perPod uint32) Config {
	return Config{Dir: dir, Users: users, PerPod: perPod, Mode: All, Logger: slog.New(slog.NewTextHandler(t.Output(), nil))}
}

func mustOpen(t *testing.T, dir string, users Range, perPod uint32) *Ranges {
	t.Helper()
	r, err := Open(config(t, dir, users, perPod))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func named(uid types.UID) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{UID: uid}} }

func mustTake(t *testing.T, r *Ranges, pod types.UID) Range {
	t.Helper()
	got, err := r.For(named(pod), true)
	if err != nil {
		t.Fatal(err)
	}
	return *got
}

func TestRangesDifferAndAreKept(t *testing.T) {
	dir := t.TempDir()
	all := Range{First: 10 * unit, Length: 3 * unit}
	r := mustOpen(t, dir, all, 0)
	a, b := mustTake(t, r, "a"), mustTake(t, r, "b")
	if a != (Range{10 * unit, unit}) || b != (Range{11 * unit, unit}) || mustTake(t, r, "a") != a {
		t.Errorf("a has %v, b has %v", a, b)
	}
	r = mustOpen(t, dir, all, 0) // as after a restart
	if got := r.Of("b"); got == nil || *got != b {
		t.Errorf("b has %v after a restart", got)
	}
	c := mustTake(t, r, "c")
	if c != (Range{12 * unit, unit}) {
		t.Errorf("c has %v", c)
	}
	if _, err := r.For(named("d"), true); !errors.Is(err, errNoneFree) {
		t.Errorf("a fourth of three: %v", err)
	}
	r.Free("a")
	if got := mustTake(t, r, "d"); got != a {
		t.Errorf("d has %v", got)
	}
}

// TestAFreedRangeIsNotTheNext: what a pod has left somewhere is not the next one's.
func TestAFreedRangeIsNotTheNext(t *testing.T) {
	r := mustOpen(t, t.TempDir(), Range{First: unit, Length: 4 * unit}, 0)
	a := mustTake(t, r, "a")
	r.Free("a")
	if b := mustTake(t, r, "b"); b == a {
		t.Errorf("b has a's %v", b)
	}
}

// TestRangesOfOtherLengths were given under another configuration.
func TestRangesOfOtherLengths(t *testing.T) {
	dir := t.TempDir()
	all := Range{First: unit, Length: 5 * unit}
	mustTake(t, mustOpen(t, dir, all, 0), "small")
	r := mustOpen(t, dir, all, 2*unit)
	if got := mustTake(t, r, "large"); got != (Range{3 * unit, 2 * unit}) {
		t.Errorf("large has %v", got)
	}
}

func TestADamagedFileIsNoRange(t *testing.T) {
	const good = `{"uidMappings":[{"hostId":131072,"containerId":0,"length":65536}],"gidMappings":[{"hostId":131072,"containerId":0,"length":65536}]}`
	for name, test := range map[string]struct {
		files []string
		ok    bool
	}{
		"a kubelet's":   {[]string{good}, true},
		"the same":      {[]string{good, good}, false},
		"nothing":       {[]string{""}, false},
		"no mapping":    {[]string{"{}"}, false},
		"host's root":   {[]string{strings.ReplaceAll(good, "131072", "0")}, false},
		"groups differ": {[]string{strings.Replace(good, "131072", "262144", 1)}, false},
		"too far":       {[]string{strings.ReplaceAll(good, "131072", "4294967295")}, false},
		"too long":      {[]string{good + strings.Repeat(" ", fileBytesMax)}, false},
	} {
		dir := t.TempDir()
		for i, file := range test.files {
			pod := filepath.Join(dir, string(rune('a'+i)))
			if err := errors.Join(os.Mkdir(pod, 0o700), os.WriteFile(filepath.Join(pod, fileName), []byte(file), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		r := mustOpen(t, dir, everyone, 0)
		if got := r.Of(types.UID(rune('a' + len(test.files) - 1))); (got != nil) != test.ok {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestNotEveryPodGetsARange(t *testing.T) {
	r := mustOpen(t, t.TempDir(), everyone, 0)
	if got, err := r.For(named("a"), false); got != nil || err != nil {
		t.Errorf("on a node without user namespaces: %v %v", got, err)
	}
	host := named("b")
	host.Spec.HostNetwork = true
	if got, err := r.For(host, true); got != nil || err != nil {
		t.Errorf("in the network of the host: %v %v", got, err)
	}
	var none *Ranges
	none.Free("a")
	if got, err := none.For(named("a"), true); got != nil || err != nil {
		t.Errorf("of none: %v %v", got, err)
	}
}

func TestBadNumbersAreRefused(t *testing.T) {
	for name, test := range map[string]struct {
		all    Range
		perPod uint32
		ok     bool
	}{
		"all":        {everyone, 0, true},
		"more":       {everyone, 4 * unit, true},
		"uneven":     {everyone, unit + 1, false},
		"too few":    {Range{unit, unit}, 2 * unit, false},
		"host's own": {Range{0, 10 * unit}, 0, false},
		"off":        {Range{unit + 1, 10 * unit}, 0, false},
	} {
		if _, err := Open(config(t, t.TempDir(), test.all, test.perPod)); (err == nil) != test.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestSubordinateIDs(t *testing.T) {
	const one = "root:1:2\nkubelet:65536:7208960\n"
	for name, test := range map[string]struct {
		uids, gids string
		want       Range
		ok         bool
	}{
		"none":    {"root:1:2\n", "", everyone, true},
		"one":     {one, one, Range{65536, 7208960}, true},
		"two":     {one + one, one + one, Range{}, false},
		"only":    {one, "", Range{}, false},
		"differ":  {one, "kubelet:131072:7208960\n", Range{}, false},
		"no id":   {"kubelet:x:1\n", one, Range{}, false},
		"too far": {"kubelet:4294901760:65536\n", "kubelet:4294901760:65536\n", Range{}, false},
	} {
		uids, err := subIDs(strings.NewReader(test.uids))
		gids, err2 := subIDs(strings.NewReader(test.gids))
		err = errors.Join(err, err2)
		var got Range
		if err == nil {
			got, err = choose(uids, gids)
		}
		if (err == nil) != test.ok || got != test.want {
			t.Errorf("%s: %v %v", name, got, err)
		}
	}
}
