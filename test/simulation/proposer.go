package simulation

import (
	"fmt"

	"github.com/setpoint-io/setpoint/raftstore/command"
)

// prefixes are what is watched and listed: a folder, one below it, a part of a
// name, everything.
var prefixes = []string{"pods/", "pods/a/", "nodes/n", ""}

// proposer writes under a session. Its answers get lost, and it sends again.
type proposer struct {
	session, sequence uint64
	// unanswered is to be sent again under its sequence.
	unanswered *command.Command
}

func (p *proposer) next(c command.Command) command.Command {
	p.sequence++
	c.Session, c.Sequence = p.session, p.sequence
	return c
}

// propose commits one entry with one command or more, old ones among them.
func (w *World) propose() error {
	var commands []command.Command
	for range 1 + w.random.IntN(3) {
		p := w.proposers[w.random.IntN(proposerCount)]
		c := p.unanswered
		if c != nil {
			w.did.Retries++
		} else {
			made := p.next(w.randomCommand())
			c = &made
		}
		commands = append(commands, *c)
		if p.unanswered = c; !w.chance(3) {
			p.unanswered = nil
		}
	}
	w.commit(commands...)
	return nil
}

func (w *World) randomCommand() command.Command {
	c := command.Command{Actor: command.Actor{User: "simulated"}, RequestID: fmt.Sprint(len(w.log))}
	if w.chance(6) {
		c.Fence = w.term - min(w.term-1, uint64(w.random.IntN(2)))
	}
	written := map[string]bool{}
	for range 1 + w.random.IntN(1+w.random.IntN(4)) {
		if op := w.randomOp(); !written[op.Key] {
			written[op.Key] = true
			c.Ops = append(c.Ops, op)
		}
	}
	return c
}

func (w *World) randomOp() command.Op {
	kinds := []command.OpKind{command.Put, command.Put, command.Put, command.Delete, command.Check}
	op := command.Op{Kind: kinds[w.random.IntN(len(kinds))], Key: w.randomKey(), Precondition: command.Precondition(w.random.IntN(4))}
	if op.Kind == command.Put {
		op.Value = fmt.Appendf(nil, "%d %0*d", len(w.log), w.random.IntN(200), 0)
	}
	known := w.model.objects[op.Key]
	if op.UID = known.uid; w.chance(5) {
		op.UID = fmt.Sprint("uid-", w.random.IntN(3))
	}
	if op.Revision = known.mod; w.chance(4) || op.Revision == 0 {
		op.Revision = max(1, op.Revision-min(op.Revision, uint64(w.random.IntN(5))))
	}
	return op
}

func (w *World) randomKey() string {
	if w.chance(3) {
		return fmt.Sprintf("nodes/n%d", w.random.IntN(3))
	}
	return fmt.Sprintf("pods/%c/%d", 'a'+w.random.IntN(2), w.random.IntN(4))
}
