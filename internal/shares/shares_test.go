package shares

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

func TestFits(t *testing.T) {
	for _, c := range []struct {
		name             string
		limits           Limits
		has, taken, more int
		want             bool
	}{
		{"the first of all", Limits{All: 10}, 0, 0, 1, true},
		{"the only place", Limits{All: 1}, 0, 0, 1, true},
		{"none is left", Limits{All: 1}, 0, 1, 1, false},
		{"half of all", Limits{All: 10}, 4, 4, 1, true},
		{"more than half", Limits{All: 10}, 5, 5, 1, false},
		{"the last one goes to who has none", Limits{All: 10}, 0, 9, 1, true},
		{"and to nobody else", Limits{All: 10}, 1, 9, 1, false},
		{"others have given back", Limits{All: 10}, 2, 4, 1, true},
		{"at most so many each", Limits{All: 10, Each: 2}, 2, 2, 1, false},
		{"several at once", Limits{All: 10}, 2, 2, 3, true},
		{"too many at once", Limits{All: 10}, 2, 2, 7, false},
		{"all at once, by who has none", Limits{All: 10}, 0, 0, 10, true},
		{"seven times what is left", Limits{All: 8, Factor: 7}, 6, 6, 1, true},
		{"more than that", Limits{All: 8, Factor: 7}, 7, 7, 1, false},
		{"not more than there is", Limits{All: 8, Factor: 7}, 0, 7, 2, false},
	} {
		if got := c.limits.Fits(c.has, c.taken, c.more); got != c.want {
			t.Errorf("%s: Fits = %v", c.name, got)
		}
	}
}

// enter takes as many places as there are for the tenant.
func enter(p *Places, h Holder) (leaves []func(), err error) {
	for {
		leave, err := p.Enter(h)
		if err != nil {
			return leaves, err
		}
		leaves = append(leaves, leave)
	}
}

// TestAGreedyTenantLeavesRoom: however many others take what they get, whoever comes gets something, until as many have come
// as there are halvings of the whole; and nobody waits who is privileged.
func TestAGreedyTenantLeavesRoom(t *testing.T) {
	p := New("watches", Limits{All: 1000, Each: 300, Privileged: 400})
	for n, want := range []int{300, 300, 200, 100, 50, 25, 13, 6, 3, 2, 1} {
		tenant := Holder{Name: fmt.Sprint("user ", n)}
		leaves, err := enter(p, tenant)
		var full *FullError
		if len(leaves) != want || !errors.As(err, &full) || full.Has != want {
			t.Errorf("tenant %d has %d places, want %d: %v", n, len(leaves), want, err)
		}
	}
	_, err := p.Enter(Holder{Name: "user late"})
	if want := "too many watches: 1000 of 1000 are taken, and none is left for user late"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	admins, err := enter(p, Holder{Name: "user admin", Privileged: true})
	if len(admins) != 400 || err.Error() != "too many watches: 400 belong to user admin" {
		t.Errorf("an administrator has %d places: %v", len(admins), err)
	}
}

func TestARefusalIsShort(t *testing.T) {
	p := New("watches", Limits{All: 2})
	h := Holder{Name: strings.Repeat("n", 1<<20)}
	_, err := enter(p, h)
	if err == nil || len(err.Error()) > 300 || !strings.HasSuffix(err.Error(), ", which is its share while 1 of 2 are taken") {
		t.Errorf("%.400v", err)
	}
}

// TestPlacesAreCounted: after any history the counts are those of who is there, and nothing is kept of who has gone.
func TestPlacesAreCounted(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	p := New("streams", Limits{All: 40, Each: 15, Privileged: 15})
	type guest struct {
		holder Holder
		leave  func()
	}
	var guests []guest
	for range 10_000 {
		if len(guests) > 0 && random.IntN(5) < 2 {
			at := random.IntN(len(guests))
			guests[at].leave()
			guests[at] = guests[len(guests)-1]
			guests = guests[:len(guests)-1]
			continue
		}
		n := random.IntN(9)
		h := Holder{Name: fmt.Sprint(n), Privileged: n == 0}
		if leave, err := p.Enter(h); err == nil {
			guests = append(guests, guest{h, leave})
		}
		check(t, p, func(count func(Holder)) {
			for _, g := range guests {
				count(g.holder)
			}
		})
	}
	for _, g := range guests {
		g.leave()
	}
	if len(p.holders) != 0 || p.taken != 0 {
		t.Errorf("kept: %v, %d taken", p.holders, p.taken)
	}
	if got := testutil.CollectAndCount(Metrics{p}); got != 3 {
		t.Errorf("%d series", got)
	}
}

func check(t *testing.T, p *Places, each func(count func(Holder))) {
	t.Helper()
	tenants, by := 0, map[Holder]int{}
	each(func(h Holder) {
		by[h]++
		if !h.Privileged {
			tenants++
		}
	})
	if tenants != p.taken || tenants > p.limits.All || len(by) != len(p.holders) {
		t.Fatalf("%d tenants' places, counted %d; %d holders, counted %d", tenants, p.taken, len(by), len(p.holders))
	}
	for h, n := range by {
		if p.holders[h] != n || n > p.limits.Each {
			t.Fatalf("%v has %d, counted %d", h, n, p.holders[h])
		}
	}
}
