package command

// FormatVersion is the entry format this binary writes.
const FormatVersion = 1

// Entry is one entry of the raft log: a group commit of commands that waited
// together. They are judged one after the other, in order; one that is refused
// does not hinder those after it.
type Entry struct {
	FormatVersion uint8
	// Term is the raft term in which the proposing leader packed the entry.
	Term     uint64
	Commands []Command
	// UnixNanos is when the leader put the entry into its log, by its clock: raft keeps it beside the entry, and it is not part of the
	// entry's bytes. Nothing is decided by it. 0: unknown.
	UnixNanos int64
}

// Command is one request to change the state: all of its operations take
// effect, or none does.
type Command struct {
	// Session and Sequence make a retried command take effect once: a sequence seen before gets the first result
	// again. With session 0 a retry is a new command.
	Session, Sequence uint64
	// Fence is the raft term in which the proposing controllers started; an
	// entry of any other term refuses the command. 0 is unfenced.
	Fence uint64
	// Actor, Cause and RequestID record who made the change and why. They do not influence whether it is applied.
	Actor     Actor
	Cause     Cause
	RequestID string
	Ops       []Op
	// Essential asks the leader to accept the command even when disk space or memory is low. It is not part of the
	// log.
	Essential bool
}

// Actor names who asked for a change.
type Actor struct {
	User         string
	FieldManager string
}

// Cause names the object whose change led a controller to this command. The zero
// value means that nothing in the store caused it.
type Cause struct {
	UID      string
	Revision uint64
}

// Origin is where a change came from, kept with its event in the watch ring.
// Events of one command share one Origin: treat it as immutable.
type Origin struct {
	Actor     Actor
	Cause     Cause
	RequestID string
	// Index and Term place the log entry that made the change.
	Index, Term uint64
	// UnixNanos is the entry's; snapshots do not carry it.
	UnixNanos int64
}

// OpKind says what an operation does. The numbers are part of the log format.
type OpKind uint8

// The operations of the log. The system operations, from OpenSession on, must be
// the only one in their command.
const (
	// Put stores Value under Key with UID, creating or replacing.
	Put OpKind = 1
	// Delete removes Key. It uses up a revision only if Key was present.
	Delete OpKind = 2
	// Check changes nothing; its precondition guards the other operations.
	Check OpKind = 3
	// OpenSession starts a session; Result.Revision is its id.
	OpenSession OpKind = 4
	// CloseSession ends the session whose id is Op.Revision.
	CloseSession OpKind = 5
	// StateHash claims that the state at Op.Revision has the 16-byte hash in
	// Value. Replicas that find another one ask each other who differs from most.
	StateHash OpKind = 6
	// BumpRevision adds Op.Revision to the counter and forgets the watch
	// history, so that every cache lists again. For recovery from backup.
	BumpRevision OpKind = 7
	// SetFeatureLevel raises the feature level to Op.Revision; it never falls. From
	// LifeLevel on Value names the cluster's life, which takes effect once.
	SetFeatureLevel OpKind = 8
	// SetClusterID stores Value as the cluster's identity, once.
	SetClusterID OpKind = 9

	lastKind = SetClusterID
)

// LifeLevel is the feature level from which on logs and snapshots name a life.
const LifeLevel = 2

// IsSystem reports whether the operation concerns the store itself, not a key.
func (k OpKind) IsSystem() bool { return k >= OpenSession && k <= lastKind }

// Precondition says what must hold of an operation's key before its command. The
// numbers are part of the log format.
type Precondition uint8

// The preconditions. With Present and AtRevision a non-empty Op.UID must also be
// the UID stored.
const (
	Any        Precondition = 0
	Absent     Precondition = 1
	Present    Precondition = 2
	AtRevision Precondition = 3

	lastPrecondition = AtRevision
)

// Op is one operation on one key, or one system operation.
type Op struct {
	Kind OpKind
	Key  string
	// UID is the uid of the object stored by a Put, and with a precondition the
	// uid that must be found.
	UID string
	// Value is opaque to the store; its first byte is an Encoding.
	Value        []byte
	Precondition Precondition
	// Revision is the mod revision AtRevision compares with, or the number that
	// a system operation carries.
	Revision uint64
}

// Encoding is the first byte of every value: how the rest is to be read.
type Encoding = byte

// The encodings of values.
const (
	EncodingProtobuf  Encoding = 1
	EncodingJSON      Encoding = 2
	EncodingEncrypted Encoding = 3 // from raftstore.EncryptedValuesLevel on
)
