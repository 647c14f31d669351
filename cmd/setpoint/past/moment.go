package past

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

var errTime = errors.New("want a time like 10m, '10 minutes ago', 2h30m, '2006-01-02 15:04:05' (this machine's zone) or 2006-01-02T15:04:05Z")

const (
	day  = 24 * time.Hour
	week = 7 * day
)

// units are those of a time that was a while ago, besides Go's own.
var units = map[string]time.Duration{
	"s": time.Second, "sec": time.Second, "second": time.Second, "m": time.Minute, "min": time.Minute, "minute": time.Minute,
	"h": time.Hour, "hour": time.Hour, "d": day, "day": day, "w": week, "week": week,
}

// zoned and local are the forms of a time on the clock.
var (
	zoned = []string{time.RFC3339Nano, "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05 Z07:00", "2006-01-02 15:04:05 UTC"}
	local = []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly}
)

// ParseTime reads a time of the past as people write it.
func ParseTime(text string, now time.Time) (time.Time, error) {
	text = strings.Join(strings.Fields(text), " ")
	if text == "now" {
		return now, nil
	}
	for _, form := range zoned {
		if at, err := time.Parse(form, text); err == nil {
			return at, nil
		}
	}
	for _, form := range local {
		if at, err := time.ParseInLocation(form, text, now.Location()); err == nil {
			return at, nil
		}
	}
	ago, ok := parseAgo(strings.TrimSuffix(text, " ago"))
	if !ok {
		return time.Time{}, errTime
	}
	return now.Add(-ago), nil
}

// parseAgo reads 10m, 2h30m, 3d, "10 minutes" and "an hour".
func parseAgo(text string) (time.Duration, bool) {
	if ago, err := time.ParseDuration(text); err == nil {
		return ago, ago >= 0
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	number, unit := text[:digits], strings.TrimSpace(text[digits:])
	if article, rest, found := strings.Cut(text, " "); found && (article == "a" || article == "an") {
		number, unit = "1", rest
	}
	n, err := strconv.ParseInt(number, 10, 32)
	each, known := units[unit]
	if !known {
		each, known = units[strings.TrimSuffix(unit, "s")]
	}
	ago := time.Duration(n) * each
	return ago, err == nil && known && ago/each == time.Duration(n)
}
