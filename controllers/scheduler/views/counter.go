package views

// manyUsed is from how many counts on they are kept as a list: faster to ask, and no larger than the pods that they count.
const manyUsed = 64

// counter is a list of counts, most of which are zero.
type counter struct {
	few  map[int32]int32 // none is zero; nil once there were many
	many []int32
	used int // counts that are not zero
}

func (c *counter) get(i int32) int64 {
	if int(i) < len(c.many) {
		return int64(c.many[i])
	}
	if len(c.few) == 0 {
		return 0
	}
	return int64(c.few[i])
}

// add adds to a count, and gives it as it was and as it is.
func (c *counter) add(i int32, n int64) (before, after int64) {
	before = c.get(i)
	after = before + n
	if before == 0 && after != 0 {
		c.used++
	} else if before != 0 && after == 0 {
		c.used--
	}
	c.set(i, int32(after))
	return before, after
}

func (c *counter) set(i, n int32) {
	if c.many == nil && c.used > manyUsed {
		for at, n := range c.few {
			c.setMany(at, n)
		}
		c.few = nil
	}
	switch {
	case c.many != nil:
		c.setMany(i, n)
	case n == 0:
		delete(c.few, i)
	default:
		if c.few == nil {
			c.few = map[int32]int32{}
		}
		c.few[i] = n
	}
}

func (c *counter) setMany(i, n int32) {
	if short := int(i) + 1 - len(c.many); short > 0 {
		c.many = append(c.many, make([]int32, short)...)
	}
	c.many[i] = n
}

// each visits the counts that are not zero.
func (c *counter) each(visit func(i int32, n int64)) {
	for i, n := range c.few {
		visit(i, int64(n))
	}
	for i, n := range c.many {
		if n != 0 {
			visit(int32(i), int64(n))
		}
	}
}
