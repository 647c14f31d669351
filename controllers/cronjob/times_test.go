package cronjob

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
)

// calendar is a schedule whose times are known without the library: sets of minutes, hours, days, months and weekdays.
type calendar struct {
	sets     [5][]int
	any      [5]bool // the field is a star
	schedule string
	zone     *time.Location
}

var ranges = [5][2]int{{0, 59}, {0, 23}, {1, 31}, {1, 12}, {0, 6}}

// newCalendar is a random schedule, of which dense ones have many times.
func newCalendar(rng *rand.Rand, zone string, dense bool) calendar {
	c := calendar{zone: must(time.LoadLocation(zone))}
	var words []string
	for i, r := range ranges {
		span := r[1] - r[0] + 1
		var word string
		n := rng.IntN(10)
		star := n < 6 || dense && (i > 1 || n < 7)
		switch {
		case i > 0 && star:
			word, c.any[i] = "*", true
			c.add(i, r[0], r[1], 1)
		case n < 8 && i < 2:
			step := 2 + rng.IntN(span/2)
			word = fmt.Sprintf("*/%d", step)
			c.add(i, r[0], r[1], step)
		case n < 9:
			a, b := r[0]+rng.IntN(span), r[0]+rng.IntN(span)
			word = fmt.Sprintf("%d-%d", min(a, b), max(a, b))
			c.add(i, min(a, b), max(a, b), 1)
		default:
			a, b := r[0]+rng.IntN(span), r[0]+rng.IntN(span)
			word = fmt.Sprintf("%d,%d", a, b)
			c.sets[i] = []int{a, b}
		}
		words = append(words, word)
	}
	c.schedule = strings.Join(words, " ")
	return c
}

func (c *calendar) add(field, from, to, step int) {
	for v := from; v <= to; v += step {
		c.sets[field] = append(c.sets[field], v)
	}
}

// has tells whether a minute is one of the schedule's.
func (c *calendar) has(t time.Time) bool {
	t = t.In(c.zone)
	in := func(field, v int) bool { return slices.Contains(c.sets[field], v) }
	day, weekday := in(2, t.Day()), in(4, int(t.Weekday()))
	fits := day && weekday
	if !c.any[2] && !c.any[4] {
		fits = day || weekday // as cron has it
	}
	return fits && in(0, t.Minute()) && in(1, t.Hour()) && in(3, int(t.Month())) && t.Second() == 0
}

// latest is the last minute after begin and not after now that is one of the schedule's, and how many there are.
func (c *calendar) latest(begin, now time.Time) (latest time.Time, n int) {
	for t := begin.Truncate(time.Minute).Add(time.Minute); !t.After(now); t = t.Add(time.Minute) {
		if c.has(t) {
			latest, n = t, n+1
		}
	}
	return latest, n
}

var zones = []string{"UTC", "Europe/Berlin", "America/New_York", "Australia/Sydney", "Asia/Kolkata"}

// TestLatestTime: the search finds what looking at every minute finds, over changes of summer time too.
func TestLatestTime(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	found, many := 0, 0
	for range 1_000 {
		c := newCalendar(rng, zones[rng.IntN(len(zones))], rng.IntN(2) == 0)
		begin := time.Date(2026, time.March, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.IntN(300*24*3600)) * time.Second)
		span := []time.Duration{time.Hour, 24 * time.Hour, 4 * 24 * time.Hour}[rng.IntN(3)]
		now := begin.Add(time.Duration(rng.Int64N(int64(span))))
		schedule, err := parse(newCronJob(c.schedule, inZone(c.zone.String())))
		if err != nil {
			t.Fatalf("%s: %v", c.schedule, err)
		}
		s := times{schedule, begin}
		want, n := c.latest(begin, now)
		got, ok := s.latest(now)
		if ok != (n > 0) || !got.Equal(want) {
			t.Errorf("%q in %s, after %s until %s: got %s, want %s", c.schedule, c.zone, begin, now, got, want)
		}
		if more := s.moreThan(missedMax, begin, now); more != (n > missedMax) {
			t.Errorf("%q in %s, after %s until %s: more than %d: %v, there are %d", c.schedule, c.zone, begin, now, missedMax, more, n)
		}
		if n > 0 {
			found++
		}
		if n > missedMax {
			many++
		}
	}
	if found < 300 || many < 50 {
		t.Errorf("only %d with a time, %d with many", found, many)
	}
}

// TestLatestTimeOverYears: looking back far is neither wrong nor slow.
func TestLatestTimeOverYears(t *testing.T) {
	now := time.Date(2126, time.August, 12, 10, 20, 30, 40, time.UTC)
	for schedule, want := range map[string]string{
		"* * * * *":         "2126-08-12T10:20:00Z",
		"* * * 1 *":         "2126-01-31T23:59:00Z",
		"0 0 29 2 *":        "2124-02-29T00:00:00Z",
		"30 6-16/4 * * 1-5": "2126-08-12T06:30:00Z",
		"@every 7h":         "2126-08-12T06:00:05Z",
		"@every 1s":         "2126-08-12T10:20:30Z",
		"0 0 31 2 *":        "",
	} {
		schedule, err := parse(newCronJob(schedule))
		if err != nil {
			t.Fatal(err)
		}
		got, ok := times{schedule, time.Date(2026, time.August, 12, 0, 0, 5, 0, time.UTC)}.latest(now)
		if text := got.Format(time.RFC3339); ok != (want != "") || ok && text != want {
			t.Errorf("%v: got %s, want %s", schedule, text, want)
		}
	}
}

// TestLatestTimeIsFollowedByAFutureOne, in zones with odd changes too: or a CronJob would never sleep.
func TestLatestTimeIsFollowedByAFutureOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		c := newCalendar(rng, []string{"Australia/Lord_Howe", "America/Havana", "Asia/Beirut", "America/Sao_Paulo", "Pacific/Apia"}[rng.IntN(5)], rng.IntN(2) == 0)
		begin := time.Date(2010, time.January, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(rng.Int64N(int64(3000 * 24 * time.Hour))))
		now := begin.Add(time.Duration(rng.Int64N(int64(400 * 24 * time.Hour))))
		schedule, err := parse(newCronJob(c.schedule, inZone(c.zone.String())))
		if err != nil {
			t.Fatal(err)
		}
		s := times{schedule, begin}
		latest, ok := s.latest(now)
		if !ok {
			continue
		}
		if next, _ := s.next(latest); !latest.After(begin) || latest.After(now) || !next.After(now) {
			t.Errorf("%q in %s, after %s until %s: got %s, then %s", c.schedule, c.zone, begin, now, latest, next)
		}
	}
}

func TestParse(t *testing.T) {
	for schedule, ok := range map[string]bool{
		"* * * * *": true, "@hourly": true, "@every 5m": true, "TZ=Asia/Kolkata 0 0 * * *": true,
		"TZ=0": false, "": false, "* * * * * *": false, "@reboot": false, "CRON_TZ=Nowhere/City 0 0 * * *": false,
	} {
		if _, err := parse(&batchv1.CronJob{Spec: batchv1.CronJobSpec{Schedule: schedule}}); (err == nil) != ok {
			t.Errorf("%q: %v", schedule, err)
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
