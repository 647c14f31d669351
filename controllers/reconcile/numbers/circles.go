package numbers

import "time"

const (
	// CircleRepeats is how often a loop may say within CirclePeriod what it has said of the same object shortly before. What
	// comes after is a circle.
	CircleRepeats = 20
	CirclePeriod  = time.Minute
	// CirclePause is how long the key then rests, doubled with each further circle up to CirclePauseMax. That is short
	// because a loop may have its reasons: pods that are ready and not ready in turns change one EndpointSlice there and
	// back, and traffic must follow them. A circle that turns as fast as it can is a thousand times slower all the same.
	CirclePause    = time.Second
	CirclePauseMax = 8 * time.Second
	// circleProbation is how long an object must not be repeated until its circles are forgotten; before, one repetition is
	// a further circle.
	circleProbation = 2 * time.Minute
	// saidMax is how many of the last texts of an object are known again: a circle of so many steps is seen.
	saidMax = 4
	// ObjectsMax is how many objects of a loop are looked at; of more, those written longest ago are not.
	ObjectsMax = 512
)

// Circle is an object that a loop writes again and again and always says the same: it undoes or repeats itself, or is
// undone by another.
type Circle struct {
	// Key is the one whose passes write, Object what they write.
	Key    string `json:"key"`
	Object string `json:"object"`
	// Repeats are how many writes of the last period repeated an earlier one.
	Repeats int `json:"repeats"`
	// Circles are how often it was stopped, Until is until when the key rests.
	Circles int       `json:"circles"`
	Until   time.Time `json:"until"`
}

// written is what is known of one object.
type written struct {
	begun, last time.Time
	said        [saidMax]uint64
	repeats     int
	circles     int
	circle      *Circle // the last one
}

type circles struct {
	objects map[string]*written
	putOff  map[string]time.Time // until when keys rest; not more than objects
}

func (c *circles) add(now time.Time, key, object string, said uint64) *Circle {
	o := c.of(now, object)
	if now.Sub(o.begun) > CirclePeriod {
		o.begun, o.repeats = now, 0
	}
	again := o.knows(said)
	o.last = now
	if !again {
		return nil
	}
	o.repeats++
	if o.circles == 0 && o.repeats < CircleRepeats {
		return nil
	}
	pause := min(CirclePause<<min(o.circles, 10), CirclePauseMax)
	o.circles++
	o.circle = &Circle{Key: key, Object: object, Repeats: o.repeats, Circles: o.circles, Until: now.Add(pause)}
	if c.putOff == nil {
		c.putOff = map[string]time.Time{}
	}
	c.putOff[key] = o.circle.Until
	return o.circle
}

// of is what is known of the object; of one that was left alone for long, nothing.
func (c *circles) of(now time.Time, object string) *written {
	o := c.objects[object]
	if o != nil && now.Sub(o.last) <= circleProbation {
		return o
	}
	if c.objects == nil {
		c.objects = map[string]*written{}
	}
	if o == nil && len(c.objects) >= ObjectsMax {
		c.forget()
	}
	o = &written{begun: now}
	c.objects[object] = o
	return o
}

// forget drops the object that was written longest ago.
func (c *circles) forget() {
	oldest := ""
	for name, o := range c.objects {
		if oldest == "" || o.last.Before(c.objects[oldest].last) {
			oldest = name
		}
	}
	if o := c.objects[oldest]; o.circle != nil {
		delete(c.putOff, o.circle.Key)
	}
	delete(c.objects, oldest)
}

// knows says whether one of the last texts was this one, and remembers it.
func (o *written) knows(said uint64) bool {
	for _, earlier := range o.said {
		if earlier == said {
			return true
		}
	}
	copy(o.said[1:], o.said[:])
	o.said[0] = said
	return false
}

// wait is how long a key has to rest yet.
func (c *circles) wait(now time.Time, key string) time.Duration {
	until, resting := c.putOff[key]
	if !resting {
		return 0
	}
	if !now.Before(until) {
		delete(c.putOff, key)
		return 0
	}
	return until.Sub(now)
}

// list are the circles of the last while.
func (c *circles) list(now time.Time) (found []Circle) {
	for _, o := range c.objects {
		if o.circle != nil && now.Sub(o.last) <= circleProbation {
			found = append(found, *o.circle)
		}
	}
	return found
}
