package state

import "github.com/setpoint-io/setpoint/raftstore/record"

// Rewritten returns another root with what f makes of each record: the same one, another under the same key, or nil to leave it out.
// It is for copies that are no replica of this state any more. Another record need not be sealed.
func (r *Root) Rewritten(f func(*Record) *Record) *Root {
	next := *r
	next.tree, next.digest, next.bytes = newTree(), record.Digest{}, 0
	for old := range r.All("") {
		rec := f(old)
		if rec == nil {
			continue
		}
		if rec != old {
			rec.Seal()
		}
		next.digest, next.bytes = next.digest.Plus(rec.Digest()), next.bytes+weight(rec)
		next.tree.ReplaceOrInsert(rec)
	}
	return &next
}
