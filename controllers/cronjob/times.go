package cronjob

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/utils/ptr"
)

// errNever is what upstream says of a schedule that no date fits, such as February 31.
var errNever = errors.New("time difference between two schedules is less than 1 second")

// times are those of a schedule, from a beginning on that is none of them.
type times struct {
	schedule cron.Schedule
	begin    time.Time
}

// scheduleOf is the schedule with its time zone, empty for none.
func scheduleOf(cronJob *batchv1.CronJob) (schedule, zone string) {
	return cronJob.Spec.Schedule, ptr.Deref(cronJob.Spec.TimeZone, "")
}

// zonedItself tells whether a schedule names its time zone, which old CronJobs do.
func zonedItself(schedule string) bool { return strings.Contains(schedule, "TZ") }

// parse reads the schedule of a CronJob. It survives that the library panics on a zone without a schedule, "TZ=0".
func parse(cronJob *batchv1.CronJob) (s cron.Schedule, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("invalid schedule format: %v", r)
		}
	}()
	schedule, zone := scheduleOf(cronJob)
	if zone != "" && !zonedItself(schedule) {
		schedule = "TZ=" + zone + " " + schedule
	}
	return cron.ParseStandard(schedule)
}

// next is the first time after t, which is one of the times or the beginning; false if there is none within years.
func (s times) next(t time.Time) (time.Time, bool) {
	next := s.schedule.Next(t)
	return next, next.After(t)
}

// latest is the last time that is not after now; false if there is none.
//
// Upstream estimates it from the first two, and can miss it where the times are not evenly spread.
func (s times) latest(now time.Time) (time.Time, bool) {
	first, ok := s.next(s.begin)
	if !ok || first.After(now) {
		return time.Time{}, false
	}
	if every, ok := s.schedule.(cron.ConstantDelaySchedule); ok {
		return first.Add(now.Sub(first) / every.Delay * every.Delay), true
	}
	return s.search(first, now), true
}

// search finds the latest time of a calendar, where what comes after t does not depend on the beginning.
func (s times) search(first, now time.Time) time.Time {
	low, high := first, now // a time follows low that is not after now, or low is the latest; none follows high
	for high.Sub(low) > time.Second {
		middle := low.Add(high.Sub(low) / 2)
		if next, ok := s.next(middle); ok && !next.After(now) {
			low = next
		} else {
			high = middle
		}
	}
	for {
		next, ok := s.next(low)
		if !ok || next.After(now) {
			return low
		}
		low = next
	}
}

// moreThan tells whether there are more than n times after from that are not after now.
func (s times) moreThan(n int, from, now time.Time) bool {
	t := from
	for range n + 1 {
		next, ok := s.next(t)
		if !ok || next.After(now) {
			return false
		}
		t = next
	}
	return true
}
