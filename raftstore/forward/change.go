package forward

import (
	"errors"
	"fmt"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
)

// ChangeKind is what a Change does.
type ChangeKind int

const (
	// Add makes the server of the name, at the address, a member.
	Add ChangeKind = iota + 1
	// Remove ends the membership of the name.
	Remove
	// Replace puts the server at the address in the place of the member of its name.
	Replace
	// Transfer makes the server of the name lead, or any other one if it is empty.
	Transfer
	// Admit is what a server asks for itself: to come back under a new id, to get its
	// vote, to have its new address recorded.
	Admit
)

var changeKinds = map[ChangeKind]forwardpb.Change{
	Add: forwardpb.Change_CHANGE_ADD, Remove: forwardpb.Change_CHANGE_REMOVE, Replace: forwardpb.Change_CHANGE_REPLACE,
	Transfer: forwardpb.Change_CHANGE_TRANSFER, Admit: forwardpb.Change_CHANGE_ADMIT,
}

// Change is a change of the membership. Asking twice for the same one is harmless.
type Change struct {
	Kind ChangeKind
	// Name is the server's, Address its host:port; ID, with Admit, its member id.
	Name, ID, Address string
}

func (c Change) toWire() *forwardpb.ChangeMembersRequest {
	return &forwardpb.ChangeMembersRequest{Change: changeKinds[c.Kind], Name: c.Name, Id: c.ID, Address: c.Address}
}

func changeFromWire(m *forwardpb.ChangeMembersRequest) Change {
	c := Change{Name: m.GetName(), ID: m.GetId(), Address: m.GetAddress()}
	for kind, wire := range changeKinds {
		if wire == m.GetChange() {
			c.Kind = kind
		}
	}
	return c
}

// changeReasons are the refusals that the other side must be able to tell apart.
var changeReasons = map[connect.Code]error{
	connect.CodeUnavailable:        ErrNotLeading,
	connect.CodeFailedPrecondition: ErrUnsafe,
	connect.CodeNotFound:           ErrUnknownServer,
	connect.CodeInvalidArgument:    ErrBadChange,
	connect.CodeAlreadyExists:      ErrNameTaken,
}

// reasonHeader goes with ErrNameTaken, which has the code of ErrUnsafe: servers of older releases know that one, and that asking again
// changes nothing, and would repeat after a code that they do not know.
const (
	reasonHeader    = "Setpoint-Reason"
	reasonNameTaken = "name-taken"
)

// changeAnswer is a leader's refusal as it travels.
func changeAnswer(err error) *connect.Error {
	if !errors.Is(err, ErrNameTaken) {
		return connect.NewError(changeCode(err), err)
	}
	answer := connect.NewError(connect.CodeFailedPrecondition, err)
	answer.Meta().Set(reasonHeader, reasonNameTaken)
	return answer
}

func changeCode(err error) connect.Code {
	for code, reason := range changeReasons {
		if errors.Is(err, reason) {
			return code
		}
	}
	return connect.CodeAborted
}

// changeError finds the reason again. A connection that failed has the code of
// ErrNotLeading too, and the same remedy.
func changeError(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if answer, ok := errors.AsType[*connect.Error](err); ok {
		text = answer.Message()
		if answer.Meta().Get(reasonHeader) == reasonNameTaken {
			return &refusal{text: text, reason: ErrNameTaken}
		}
	}
	if reason, ok := changeReasons[connect.CodeOf(err)]; ok {
		return &refusal{text: text, reason: reason}
	}
	return fmt.Errorf("changing the membership: %s", text)
}

// refusal is a leader's error in its own words.
type refusal struct {
	text   string
	reason error
}

func (r *refusal) Error() string { return r.text }
func (r *refusal) Unwrap() error { return r.reason }
