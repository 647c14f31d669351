package numbers

import "time"

// rateSeconds is how far back a rate looks.
const rateSeconds = 60

// rate counts what happened in each of the last seconds.
type rate struct {
	second [rateSeconds]int64 // that the bucket is of
	count  [rateSeconds]int
}

func (r *rate) add(now time.Time) {
	second := now.Unix()
	bucket := int(uint64(second) % rateSeconds)
	if r.second[bucket] != second {
		r.second[bucket], r.count[bucket] = second, 0
	}
	r.count[bucket]++
}

// lastMinute is how often it happened in the minute before now.
func (r *rate) lastMinute(now time.Time) (sum int) {
	for i, second := range r.second {
		if age := now.Unix() - second; age >= 0 && age < rateSeconds {
			sum += r.count[i]
		}
	}
	return sum
}
