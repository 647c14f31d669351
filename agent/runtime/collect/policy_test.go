package collect

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestWhichPoliciesAreValid(t *testing.T) {
	for _, c := range []struct {
		name string
		p    Policy
		want error
	}{
		{"the default", DefaultPolicy, nil},
		{"never", Policy{HighPercent: 100, LowPercent: 80}, nil},
		{"above 100", Policy{HighPercent: 101, LowPercent: 80}, errPercent},
		{"below 0", Policy{HighPercent: 85, LowPercent: -1}, errPercent},
		{"equal", Policy{HighPercent: 85, LowPercent: 85}, errOrder},
		{"low above high", Policy{HighPercent: 80, LowPercent: 85}, errOrder},
		{"negative age", Policy{HighPercent: 85, LowPercent: 80, MinAge: -1}, errAge},
		{"ages in the wrong order", Policy{HighPercent: 85, LowPercent: 80, MinAge: time.Hour, MaxAge: time.Minute}, errAges},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := c.p.Validate(); !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
}

func TestHowMuchHasToGo(t *testing.T) {
	for _, c := range []struct {
		name string
		d    disk
		want int64
	}{
		{"below the high threshold", disk{1000, 160}, 0},
		{"at it: down to the low one", disk{1000, 150}, 50},
		{"a percent that has begun counts", disk{1000, 159}, 41},
		{"full", disk{1000, 0}, 200},
		{"sizes of large disks do not overflow", disk{64 << 40, 0}, 14073748835532},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := DefaultPolicy.excess(c.d); got != c.want {
				t.Errorf("got %d, want %d", got, c.want)
			}
		})
	}
}

func TestWhichImagesGoAndInWhichOrder(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minutes int) time.Time { return began.Add(time.Duration(minutes) * time.Minute) }
	list := []image{
		{id: "recent", first: at(0), used: at(55)},
		{id: "in-use", first: at(0), used: at(60), inUse: true},
		{id: "pinned", first: at(0), pinned: true},
		{id: "young", first: at(59)},
		{id: "never", first: at(1)},
		{id: "long-ago", first: at(0), used: at(10)},
	}
	policy := Policy{HighPercent: 85, LowPercent: 80, MinAge: 2 * time.Minute, MaxAge: 30 * time.Minute}
	ids := func(list []image) (out []string) {
		for _, i := range list {
			out = append(out, i.id)
		}
		return out
	}
	for _, c := range []struct {
		name string
		got  []image
		want []string
	}{
		{"candidates", candidates(list), []string{"never", "young", "long-ago", "recent"}},
		{"for space", policy.forSpace(candidates(list), at(60)), []string{"never", "long-ago", "recent"}},
		{"for age", policy.tooOld(candidates(list), began, at(60)), []string{"never", "young", "long-ago"}},
		{"for age, but the agent is younger", policy.tooOld(candidates(list), at(30), at(60)), nil},
		{"without a maximum age", DefaultPolicy.tooOld(candidates(list), began, at(60)), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := ids(c.got); !slices.Equal(got, c.want) {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

func TestReadableSizes(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0 B", 1023: "1023 B", 1024: "1.0 KiB", 1 << 20: "1.0 MiB", 3 << 29: "1.5 GiB", 5 << 40: "5.0 TiB", 5 << 50: "5120.0 TiB",
	} {
		if got := readable(bytes); got != want {
			t.Errorf("%d: got %s, want %s", bytes, got, want)
		}
	}
}
