package rotation

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"
)

// Held is what a member says of one kind.
type Held struct {
	Kind Kind `json:"kind"`
	// Generation is that of the rotation that it has followed last, 0 for none.
	Generation int64 `json:"generation"`
	// Uses is the fingerprint of what it uses, Trusts of all that it trusts.
	Uses   string   `json:"uses"`
	Trusts []string `json:"trusts"`
	// Problem is why it could not follow.
	Problem string `json:"problem,omitempty"`
	// Refuses, if not "", is why no rotation may begin: this member has settings of the administrator's for it.
	Refuses string `json:"refuses,omitempty"`
	// ToRewrite is how many objects it has that the old key has encrypted.
	ToRewrite int `json:"toRewrite,omitempty"`
	// Nodes are those with a session at this server that do not hold what it holds, at most LackingMax and one that says how many more.
	Nodes []Lacking `json:"nodes,omitempty"`
	// Sure are those with a session at this server that hold it, while the certificate authority is rotated.
	Sure []string `json:"sure,omitempty"`
	// Former are users who have shown this server certificates of the authority that does not sign any more, and when last.
	Former map[string]time.Time `json:"former,omitempty"`
}

// LackingMax is how many nodes a server names.
const LackingMax = 16

// Lacking is a node that has to hold what is rotated, and does not.
type Lacking struct {
	Node string `json:"node,omitempty"`
	// TooOld says that its agent's release cannot.
	TooOld bool `json:"tooOld,omitempty"`
	// Away says that it holds no session with anybody.
	Away bool `json:"away,omitempty"`
	// Ended, if not "", is when the newest certificate has ended that a server has seen of it. It counts if the node is Away: one that is
	// not may have renewed it with another server.
	Ended string `json:"ended,omitempty"`
	// Garbled says that its agent says of itself what no agent says.
	Garbled bool `json:"garbled,omitempty"`
	// More, if not 0, is how many nodes there are beside those that are named; TooOld says that there are such among them.
	More int `json:"more,omitempty"`
}

func (l Lacking) waiting(kind Kind) Waiting {
	switch {
	case l.More > 0 && l.TooOld:
		return Waiting{fmt.Sprintf("%d more nodes", l.More), "some have not taken the change yet, and of others " + nodeTooOld(kind)}
	case l.More > 0:
		return Waiting{fmt.Sprintf("%d more nodes", l.More), "they have not taken the change yet"}
	case l.Garbled:
		return Waiting{"node " + l.Node, "its agent says what no agent says: restart it, or revoke the node"}
	case l.TooOld:
		return Waiting{"node " + l.Node, nodeTooOld(kind)}
	case l.Away && l.Ended != "":
		return Waiting{"node " + l.Node, fmt.Sprintf(hasEnded, l.Ended)}
	case l.Away:
		return Waiting{"node " + l.Node, isAway}
	}
	return Waiting{"node " + l.Node, notTaken}
}

const (
	notTaken = "it has not taken the change yet"
	hasEnded = "its certificate, as far as this server has seen it, ended at %s, so it cannot take the change: start its agent with --token-file and " +
		"a token of 'setpoint token create', or delete its Node if it is gone for good"
)

func tooOld(kind Kind) string { return fmt.Sprintf("its release cannot rotate %s: upgrade it", kind) }

// nodeTooOld is tooOld of a node's agent. Those in the process of the servers, as with `setpoint dev`, have no certificate that follows.
func nodeTooOld(kind Kind) string {
	if kind != CA {
		return tooOld(kind)
	}
	return "its agent follows no certificate authority: upgrade it if its release is older; nodes of 'setpoint dev' and simulated ones cannot"
}

// Member is one of those that have to hold what is rotated.
type Member struct {
	Name string
	// Held is what it says of the kinds that it can rotate; Silent, if not "", is why it says nothing.
	Held   []Held
	Silent string
}

// Waiting is a member that is waited for, and why.
type Waiting struct {
	Member string `json:"member"`
	Why    string `json:"why"`
}

// Step is what comes next.
type Step struct {
	// Next is the phase after this one, "" while that must not begin.
	Next Phase `json:"next,omitempty"`
	// Waits are the members that are waited for.
	Waits []Waiting `json:"waitsFor,omitempty"`
	// Until, if not nil, is when the phase ends at the earliest.
	Until *time.Time `json:"until,omitempty"`
	// Broken says that something of the old one has come since State.HeldSince, or may have: how long the phase lasts counts anew.
	Broken bool `json:"-"`
	// Held says that all hold what the phase wants, that it lasts, and that nothing says from when yet: State.Held has to be written.
	Held bool `json:"-"`
}

// Plan says what comes next, by what the members say. others are waited for beside them.
func (s State) Plan(members []Member, now time.Time, others ...Waiting) Step {
	if !s.UnderWay() {
		return Step{}
	}
	step := Step{}
	for _, m := range members {
		if why := s.lacks(m); why != "" {
			step.Waits = append(step.Waits, Waiting{m.Name, why})
		}
	}
	step.Waits = append(append(step.Waits, s.nodes(members)...), others...)
	step.Waits = append(step.Waits, s.rewriting(members)...)
	lasts, all := s.lasts(), len(members) > 0 && len(step.Waits) == 0
	switch {
	case lasts > 0 && s.HeldSince == nil:
		step.Held = all
		return step
	case lasts > 0 && !all && s.Kind == EncryptionKey:
		step.Broken = true
	case lasts > 0 && s.HeldSince.Add(lasts).After(now):
		step.Until = new(s.HeldSince.Add(lasts).UTC())
	case all:
		step.Next = s.Kind.after(s.Phase)
	}
	return step
}

// nodes are those that are waited for, each once, and at last how many more there are, which may have sessions with two servers.
func (s State) nodes(members []Member) (waits []Waiting) {
	more := Lacking{}
	for _, m := range members {
		held, _ := m.find(s.Kind)
		for _, node := range held.Nodes {
			if node.More > 0 {
				more.More += node.More
				more.TooOld = more.TooOld || node.TooOld
				continue
			}
			if w := node.waiting(s.Kind); !slices.Contains(waits, w) {
				waits = append(waits, w)
			}
		}
	}
	if more.More > 0 {
		waits = append(waits, more.waiting(s.Kind))
	}
	return waits
}

// lasts is how long the phase lasts at least when all hold what it wants: until others have read of the new one, or let go of the old one.
func (s State) lasts() time.Duration {
	switch {
	case s.Phase == Trust && s.Kind == AccountKey:
		return min(AccountKeyPublished, s.KeepOld.Duration)
	case s.Phase == Trust && s.Kind == FrontProxy:
		return FrontProxyKept
	case s.Phase == Use && s.Kind.after(Use) == Drop:
		return s.KeepOld.Duration
	}
	return 0
}

// lacks is why a member is waited for, "" if it holds what it has to.
func (s State) lacks(m Member) string {
	if m.Silent != "" {
		return m.Silent
	}
	held, why := m.find(s.Kind)
	if why != "" {
		return why
	}
	uses, trusts := s.Wanted()
	switch {
	case held.Refuses != "" && s.Aborted && s.Phase == Drop:
		return "" // it never had the new one
	case held.Problem != "" && held.Refuses != "":
		return held.Refuses
	case held.Problem != "":
		return held.Problem
	case held.Generation != s.Generation || held.Uses != uses || !sameSet(held.Trusts, trusts):
		return notTaken
	}
	return ""
}

// find is what the member says of a kind, or why it says nothing.
func (m Member) find(kind Kind) (Held, string) {
	at := slices.IndexFunc(m.Held, func(h Held) bool { return h.Kind == kind })
	if at < 0 {
		return Held{}, tooOld(kind)
	}
	return m.Held[at], ""
}

func sameSet(a, b []string) bool {
	sorted := func(all []string) []string { return slices.Compact(slices.Sorted(slices.Values(all))) }
	return slices.Equal(sorted(a), sorted(b))
}

// Progress is how far a rotation is, as it is told.
type Progress struct {
	State
	Step
	// Away are nodes that hold no session with any server, at most LackingMax and one that says how many more. They are not waited for:
	// they get what is used then when they come back.
	Away []string `json:"away,omitempty"`
	// Former are the users who have shown certificates of the old authority since the new one signs, and when last. There may be others:
	// servers see those that ask them.
	Former map[string]time.Time `json:"former,omitempty"`
	// Changed says whether an order has changed something, WasUnderWay whether there was a rotation before it.
	Changed     bool `json:"changed,omitempty"`
	WasUnderWay bool `json:"wasUnderWay,omitempty"`
}

// Line tells it in one sentence.
func (p Progress) Line() string {
	switch {
	case p.Phase == "":
		return string(p.Kind) + " was never rotated"
	case p.Phase == Done && p.Aborted && p.Kind == Serving:
		return fmt.Sprintf("%s: rotation %d was aborted at %s, and what was made is used", p.Kind, p.Generation, at(p.Since))
	case p.Phase == Done && p.Aborted:
		return fmt.Sprintf("%s: rotation %d was aborted, and %s is used as before, since %s", p.Kind, p.Generation, p.used(), at(p.Since))
	case p.Phase == Done:
		return fmt.Sprintf("%s: rotation %d is done, and %s is used, since %s", p.Kind, p.Generation, p.used(), at(p.Since))
	}
	text := fmt.Sprintf("%s: rotation %d of %s is in the phase %s since %s", p.Kind, p.Generation, at(p.Started), p.name(), at(p.Since))
	var waits []string
	for _, w := range p.Waits {
		waits = append(waits, w.Member+": "+w.Why)
	}
	if len(waits) > 0 {
		text += "; it waits for " + strings.Join(waits, ", ")
	}
	switch lasts := p.lasts(); {
	case p.Until != nil:
		text += "; it lasts until " + at(*p.Until)
	case lasts > 0 && p.HeldSince == nil:
		text += fmt.Sprintf("; it lasts %s from when all hold it", duration.HumanDuration(lasts))
	}
	if len(p.Away) > 0 {
		text += "; away, and not waited for: " + strings.Join(p.Away, ", ")
	}
	if len(p.Former) > 0 {
		text += "; these were seen with certificates of the old one: " + former(p.Former)
	}
	return text
}

// used is what is used now, as people read it.
func (s State) used() string {
	if s.Kind == Serving {
		return "what was made since " + s.To
	}
	return short(s.To)
}

// name is that of the phase, as people read it.
func (s State) name() string {
	if s.Aborted {
		return string(s.Phase) + ", on the way back,"
	}
	return string(s.Phase)
}

func at(t time.Time) string { return t.UTC().Format(time.RFC3339) }

// shortLetters are enough of a fingerprint for people.
const shortLetters = 12

func short(fingerprint string) string { return fingerprint[:min(len(fingerprint), shortLetters)] }
