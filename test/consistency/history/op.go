package history

// A Kind is what an operation does.
type Kind string

// The kinds of operations.
const (
	Create Kind = "create"
	Update Kind = "update" // a PUT at a resourceVersion
	Delete Kind = "delete" // with a precondition on uid and resourceVersion
	Get    Kind = "get"
	List   Kind = "list" // all pages of it
)

// An Outcome is what the client knows afterwards.
type Outcome string

// The outcomes. A write that was refused certainly took no effect; one that is
// unknown may take effect once, at any time after its call.
const (
	OK       Outcome = "ok"
	Exists   Outcome = "exists"   // a create found the object
	Conflict Outcome = "conflict" // a write found another resourceVersion
	Absent   Outcome = "absent"   // there is no such object
	Refused  Outcome = "refused"  // says nothing of the object: not sent, or not now
	Unknown  Outcome = "unknown"
)

// A Level is how new a read has to be.
type Level string

// The levels of reads, by the resourceVersion that is asked for.
const (
	Newest  Level = ""  // none: linearizable
	Any     Level = "0" // what the replica has
	AtLeast Level = "n" // Op.Minimum or newer
	Exact   Level = "=" // a list as it was at Op.Expect
)

// An Op is one operation and its answer.
type Op struct {
	Client  int     `json:"client"`
	Replica int     `json:"replica"` // that was asked, from 0
	Kind    Kind    `json:"kind"`
	Key     string  `json:"key,omitempty"`
	Call    int64   `json:"call"`
	Return  int64   `json:"return"`
	Outcome Outcome `json:"outcome"`
	// ID is the request's own, unique in the history; a create or an update writes it.
	ID string `json:"id"`
	// Expect is the resourceVersion at which a write is wanted, or the past of which a list.
	Expect uint64 `json:"expect,omitempty"`
	UID    string `json:"uid,omitempty"`
	// Revision is that of the object that was written or read, or of the list.
	// Deletes are answered without one.
	Revision uint64 `json:"revision,omitempty"`
	// Value is the ID of the write whose object was read.
	Value    string `json:"value,omitempty"`
	Count    int    `json:"count,omitempty"` // the counter's, on its key
	Level    Level  `json:"level,omitempty"`
	Minimum  uint64 `json:"minimum,omitempty"`
	Selector string `json:"selector,omitempty"` // the wanted side; empty: all
	Items    []Item `json:"items,omitempty"`
	Pages    int    `json:"pages,omitempty"`
	Error    string `json:"error,omitempty"`
}

// Writes says whether the operation changes something.
func (o *Op) Writes() bool { return o.Kind == Create || o.Kind == Update || o.Kind == Delete }

// An Item is one object of a list, or the object of a watch event.
type Item struct {
	Key      string `json:"key"`
	UID      string `json:"uid"`
	Revision uint64 `json:"revision"`
	Value    string `json:"value"`
	Side     string `json:"side,omitempty"` // the label that selectors ask for
	Count    int    `json:"count,omitempty"`
}

// An EventType is that of a watch event, or a turn of a stream.
type EventType string

// The types of events. Started and Listed are the stream's own.
const (
	Added    EventType = "ADDED"
	Modified EventType = "MODIFIED"
	Deleted  EventType = "DELETED"
	Bookmark EventType = "BOOKMARK"
	Started  EventType = "STARTED" // a watch was opened after Item.Revision
	Expired  EventType = "EXPIRED" // 410: the stream cannot be resumed there
)

// An Event is one event of a stream.
type Event struct {
	Type    EventType `json:"type"`
	Replica int       `json:"replica"`
	At      int64     `json:"at"`
	Item
}

// A Stream is what one watcher saw, over all replicas that it watched in turn.
type Stream struct {
	Name     string  `json:"name"`
	Selector string  `json:"selector,omitempty"`
	Events   []Event `json:"events"`
}

// A Fault is one fault and when it was there.
type Fault struct {
	Name  string `json:"name"`
	What  string `json:"what"`
	Start int64  `json:"start"`
	Stop  int64  `json:"stop"`
	Error string `json:"error,omitempty"`
}

// An Epoch is all that happened in one namespace: it can be checked by itself.
type Epoch struct {
	Namespace string `json:"namespace"`
	// Start is the revision after which the namespace's objects were written, End
	// that of the last write, made when all clients had stopped.
	Start, End uint64
	Ops        []Op
	Streams    []*Stream
}
