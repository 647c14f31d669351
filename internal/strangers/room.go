package strangers

import (
	"container/list"

	"github.com/setpoint-io/setpoint/internal/shares"
)

// room has connections in the order in which they came, all of them and by whose they are. Its door guards it.
type room struct {
	limits shares.Limits
	all    *list.List            // of *conn
	of     map[string]*list.List // none is empty
}

func newRoom(limit int) *room {
	return &room{limits: shares.Limits{All: limit}, all: list.New(), of: map[string]*list.List{}}
}

// tooMany is who has to go before another one comes, or nil.
func (r *room) tooMany(whose string) *conn {
	own, has := r.of[whose], 0
	if own != nil {
		has = own.Len()
	}
	switch {
	case r.limits.Fits(has, r.all.Len(), 1):
		return nil
	case own != nil:
		return own.Front().Value.(*conn)
	default:
		return r.all.Front().Value.(*conn)
	}
}

func (r *room) add(c *conn, whose string) {
	own := r.of[whose]
	if own == nil {
		own = list.New()
		r.of[whose] = own
	}
	c.in, c.whose, c.place, c.own = r, whose, r.all.PushBack(c), own.PushBack(c)
}

// leave takes the connection from its room, if it is in one. It is called with the door's lock held.
func (c *conn) leave() {
	r := c.in
	if r == nil {
		return
	}
	own := r.of[c.whose]
	r.all.Remove(c.place)
	own.Remove(c.own)
	if own.Len() == 0 {
		delete(r.of, c.whose)
	}
	c.in, c.place, c.own = nil, nil, nil
}
