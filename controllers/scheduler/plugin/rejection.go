package plugin

import "fmt"

// Rejection says why a node does not fit and what would make it fit.
type Rejection struct {
	// Reasons are upstream's messages, in upstream's order; they are counted over all nodes.
	Reasons []string
	// Remedies complete the sentence "it would fit on <node> if ..."; at least one.
	Remedies []fmt.Stringer
	// Cost orders remedies between nodes, 0 and up; a resource deficit costs its share of the node in 1/1000.
	Cost int64
	// Unresolvable tells that removing pods from the node would not help, so preemption need not look at it.
	Unresolvable bool
}

// Text is a remedy in words. Others put their words together only when somebody asks for them.
type Text string

func (t Text) String() string { return string(t) }

// Texts are the remedies in words.
func (r *Rejection) Texts() []string {
	texts := make([]string, len(r.Remedies))
	for i, remedy := range r.Remedies {
		texts[i] = remedy.String()
	}
	return texts
}

// Reject is a Rejection with one reason and one remedy.
func Reject(reason, remedy string) *Rejection {
	return &Rejection{Reasons: []string{reason}, Remedies: []fmt.Stringer{Text(remedy)}}
}

// RejectForGood is a Rejection that no removal of pods can lift.
func RejectForGood(reason, remedy string) *Rejection {
	return &Rejection{Reasons: []string{reason}, Remedies: []fmt.Stringer{Text(remedy)}, Unresolvable: true}
}
