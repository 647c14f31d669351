package transport

import (
	"time"

	"github.com/hashicorp/raft"

	"github.com/setpoint-io/setpoint/internal/aligned"
)

// steadyBeats is how many heartbeats in a row are in time before one is held back: about three seconds of them.
const steadyBeats = 40

// rhythm is how one peer was sent heartbeats, and answered.
//
// Raft sends one to each follower every tenth to fifth of its timeout, at moments of each follower's own, which was two thirds of what
// woke an idle leader. While nothing is late they are held back to whole multiples of Config.Beat, for all followers together. As soon as
// one is late, raft's own pace is back: on a machine or a network that is slow now and then, a follower that misses one must hear another
// before its patience ends.
type rhythm struct {
	inTime int       // how many in a row
	sent   time.Time // when the last one was
}

// pause is how long a heartbeat that raft sends now is held back. Until the last one's next multiple it is, not the next of now, so two
// are never further apart than a beat.
func (r *rhythm) pause(now time.Time, beat time.Duration) time.Duration {
	if beat == 0 || r.inTime < steadyBeats {
		return 0
	}
	return aligned.Until(r.sent, beat) - now.Sub(r.sent)
}

// note takes in a heartbeat. It is late an eighth of a beat after it was due, or answered as long after it was sent.
func (r *rhythm) note(sent, answered time.Time, err error, beat time.Duration) {
	slack := beat / 8
	if r.inTime++; err != nil || answered.Sub(sent) > slack || sent.Sub(r.sent) > beat+slack {
		r.inTime = 0
	}
	r.sent = sent
}

// beat sends a heartbeat, at the next beat if there is no hurry.
func (t *Transport) beat(
	id raft.ServerID, target raft.ServerAddress, request *raft.AppendEntriesRequest, response *raft.AppendEntriesResponse,
) error {
	t.holdBack(id)
	sent := time.Now()
	err := t.appendEntries(id, target, request, response)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.rhythmOf(id).note(sent, time.Now(), err, t.every)
	return err
}

// holdBack waits until the heartbeat is to be sent.
func (t *Transport) holdBack(id raft.ServerID) {
	if held := t.hold(id); held != nil {
		select {
		case <-held:
		case <-t.leaving:
		}
	}
}

// hold returns what is closed when the peer's heartbeat is to be sent; nil: now. All that wait are due at the same moment, so one timer
// wakes them.
func (t *Transport) hold(id raft.ServerID) <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	pause := t.rhythmOf(id).pause(time.Now(), t.every)
	if t.hurrying > 0 || pause <= 0 {
		return nil
	}
	if t.held == nil {
		t.held = make(chan struct{})
		time.AfterFunc(pause, t.release(t.held))
	}
	return t.held
}

// release returns what sends the heartbeats that wait for held, if nobody has.
func (t *Transport) release(held chan struct{}) func() {
	return func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.held == held {
			close(held)
			t.held = nil
		}
	}
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
		close(t.held)
		t.held = nil
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
