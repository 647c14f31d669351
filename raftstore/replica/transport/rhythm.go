package transport

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/internal/aligned"
)

// steadyBeats is how many heartbeats in a row are in time before one is held back: three seconds of raft's own by default.
const steadyBeats = 40

// rhythm is how one peer was sent heartbeats, and answered. Each peer has its own: one that answers late gets raft's pace alone.
//
// Raft sends one to each follower every tenth to fifth of the followers' patience, at moments of each follower's own, which was most of
// what woke an idle leader. While nothing is late they are held back to whole multiples of Config.Beat, for all followers together. As
// soon as one is late, raft's own pace is back: on a machine or a network that is slow now and then, a follower that misses one must hear
// another before its patience ends.
//
// The price is the first pause of a leader that was calm: it comes on top of up to a beat of silence, two fifths of the followers'
// patience, where raft alone has a fifth. And raft sends a peer no further heartbeat before the last was answered or has failed.
type rhythm struct {
	inTime int       // how many in a row
	last   heartbeat // the newest that was answered, or failed
}

// heartbeat is when raft asked for one, when it was to be sent, when it was, and when its answer came.
type heartbeat struct{ asked, due, sent, answered time.Time }

// due is when a heartbeat is to be sent that raft asks for now: at the first multiple of the beat after the last one was sent, or now if
// that has passed. So two that are held back are never meant to be further apart than a beat.
func (r *rhythm) due(now time.Time, beat time.Duration) time.Time {
	if beat == 0 || r.inTime < steadyBeats {
		return now
	}
	next := r.last.sent.Add(aligned.Until(r.last.sent, beat))
	if next.Before(now) {
		return now
	}
	return next
}

// note takes in a heartbeat. It is late if raft asked for it, or it was sent or answered, an eighth of a beat after it should have been.
// Raft asks within a fifth of the followers' patience after the last answer: half a beat. If the beat rests on a lease under four fifths
// of their patience raft itself is late, and next to none is held back.
func (r *rhythm) note(h heartbeat, err error, beat time.Duration) {
	slack := beat / 8
	late := h.asked.Sub(r.last.answered) > beat/2+slack || h.sent.Sub(h.due) > slack || h.answered.Sub(h.sent) > slack
	if r.inTime++; late || err != nil {
		r.inTime = 0
	}
	r.last = h
}

// beat sends a heartbeat, at the next beat if there is no hurry.
func (t *Transport) beat(
	id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse,
) error {
	h := heartbeat{asked: time.Now()}
	h.due = t.holdBack(id, h.asked)
	h.sent = time.Now()
	err := t.appendEntries(id, target, request, response)
	h.answered = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rhythmOf(id).note(h, err, t.every)
	return err
}

// holdBack waits until the heartbeat is to be sent, and returns when that was at the latest.
func (t *Transport) holdBack(id raft.ServerID, asked time.Time) (due time.Time) {
	held, due := t.hold(id, asked)
	if held != nil {
		select {
		case <-held:
		case <-t.leaving:
		}
	}
	return due
}

// hold returns what is closed when the peer's heartbeat is to be sent, nil for now, and when that is at the latest.
func (t *Transport) hold(id raft.ServerID, asked time.Time) (held <-chan struct{}, due time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	due = t.rhythmOf(id).due(asked, t.every)
	if t.hurrying > 0 || !due.After(asked) {
		return nil, asked
	}
	if t.held == nil {
		t.held = t.newWait(due)
	}
	t.held.noLaterThan(due)
	return t.held.over, due
}

// wait is what all heartbeats wait for that are held back. They are due at the same moment, unless the clock was set meanwhile: then the
// first that is due takes the others along. So one timer wakes them.
type wait struct {
	over  chan struct{} // closed when they are to be sent
	due   time.Time
	timer *time.Timer
}

func (t *Transport) newWait(due time.Time) *wait {
	w := &wait{over: make(chan struct{}), due: due}
	w.timer = time.AfterFunc(time.Until(due), func() { t.release(w) })
	return w
}

// noLaterThan is called under the transport's mu.
func (w *wait) noLaterThan(due time.Time) {
	if due.Before(w.due) {
		w.due = due
		w.timer.Reset(time.Until(due))
	}
}

// release sends the heartbeats of this wait, if nobody has.
func (t *Transport) release(w *wait) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.held == w {
		t.sendHeld()
	}
}

// sendHeld is called under t.mu, while heartbeats wait.
func (t *Transport) sendHeld() {
	close(t.held.over)
	t.held = nil
}

// InHurry calls ask, which waits for answers to heartbeats: until it returns none is held back. Calls may overlap.
func (t *Transport) InHurry(ask func() error) error {
	t.hurries(1)
	defer t.hurries(-1)
	return ask()
}

func (t *Transport) hurries(more int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.hurrying += more; t.held != nil && t.hurrying > 0 {
		t.sendHeld()
	}
}

// rhythmOf is called under t.mu.
func (t *Transport) rhythmOf(id raft.ServerID) *rhythm {
	r, known := t.rhythms[id]
	if !known {
		r = &rhythm{}
		t.rhythms[id] = r
	}
	return r
}
