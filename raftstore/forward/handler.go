package forward

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"

	"github.com/setpoint-io/setpoint/raftstore/command"
	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb"
	"github.com/setpoint-io/setpoint/raftstore/forward/forwardpb/forwardpbconnect"
)

// messageLimitBytes bounds one message: a command that travels alone, or a batch.
const messageLimitBytes = 2 * command.MaxCommandBytes

// Backend is the replica that a handler serves.
type Backend interface {
	// Propose puts commands into the log if this replica leads, and returns one
	// outcome for each.
	Propose(ctx context.Context, commands []command.Command) []Outcome
	// ReadIndex returns the revision if this replica leads, and proves it. The word is
	// that of the caller.
	ReadIndex(ctx context.Context, word Word) (Answer, error)
	// Status describes the replica.
	Status() Status
	// ChangeMembers changes the membership if this replica leads.
	ChangeMembers(ctx context.Context, c Change) error
	// LeaderGone says whether this replica finds that the leader's process has ended.
	LeaderGone(ctx context.Context, l Led) Vacancy
	// CompareState hears another member's claim, and returns this replica's own, if it
	// has one.
	CompareState(claim Claim) (hash [command.HashBytes]byte, known bool)
}

// NewHandler returns the service and the pattern to mount it at. authorize decides
// whether a request comes from a server of the cluster; nil refuses all.
func NewHandler(b Backend, authorize func(*http.Request) error) (pattern string, handler http.Handler) {
	pattern, service := forwardpbconnect.NewPeerServiceHandler(&service{b}, connect.WithReadMaxBytes(messageLimitBytes))
	return pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if authorize == nil {
			http.Error(w, "peers are not authorized here", http.StatusForbidden)
			return
		}
		if err := authorize(r); err != nil {
			http.Error(w, "not a server of this cluster", http.StatusForbidden)
			return
		}
		service.ServeHTTP(w, r)
	})
}

// service translates between the wire and a backend.
type service struct{ backend Backend }

var _ forwardpbconnect.PeerServiceHandler = (*service)(nil)

// Propose implements forwardpbconnect.PeerServiceHandler.
func (s *service) Propose(
	ctx context.Context,
	r *connect.Request[forwardpb.ProposeRequest],
) (*connect.Response[forwardpb.ProposeResponse], error) {
	entry, err := command.Unmarshal(r.Msg.GetEntry())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	if len(entry.Commands) > command.MaxCommands {
		return nil, connect.NewError(connect.CodeInvalidArgument, errors.New("too many commands"))
	}
	for _, i := range r.Msg.GetEssential() {
		if int(i) < len(entry.Commands) {
			entry.Commands[i].Essential = true
		}
	}
	response := &forwardpb.ProposeResponse{}
	for _, o := range s.backend.Propose(ctx, entry.Commands) {
		response.Outcomes = append(response.Outcomes, toWire(o))
	}
	return connect.NewResponse(response), nil
}

func toWire(o Outcome) *forwardpb.Outcome {
	switch {
	case o.Err == nil:
		return &forwardpb.Outcome{Result: o.Result.Append(nil)}
	case errors.Is(o.Err, ErrOverloaded):
		return &forwardpb.Outcome{Refusal: forwardpb.Refusal_REFUSAL_OVERLOADED}
	case errors.Is(o.Err, ErrNoSpace):
		detail := strings.TrimPrefix(o.Err.Error(), ErrNoSpace.Error()+": ")
		return &forwardpb.Outcome{Refusal: forwardpb.Refusal_REFUSAL_NO_SPACE, Message: detail}
	case errors.Is(o.Err, ErrNotProposed):
		return &forwardpb.Outcome{Refusal: forwardpb.Refusal_REFUSAL_NOT_LEADER, Message: o.Err.Error()}
	}
	return &forwardpb.Outcome{Refusal: forwardpb.Refusal_REFUSAL_OUTCOME_UNKNOWN, Message: o.Err.Error()}
}

// ReadIndex implements forwardpbconnect.PeerServiceHandler.
func (s *service) ReadIndex(
	ctx context.Context,
	r *connect.Request[forwardpb.ReadIndexRequest],
) (*connect.Response[forwardpb.ReadIndexResponse], error) {
	answer, err := s.backend.ReadIndex(ctx, Word{ID: r.Msg.GetId(), Term: r.Msg.GetTerm(), Seen: r.Msg.GetSeen()})
	if err != nil {
		return nil, connect.NewError(connect.CodeFailedPrecondition, err)
	}
	return connect.NewResponse(&forwardpb.ReadIndexResponse{Revision: answer.Revision, Round: answer.Round}), nil
}

// Status implements forwardpbconnect.PeerServiceHandler.
func (s *service) Status(context.Context, *connect.Request[forwardpb.StatusRequest]) (*connect.Response[forwardpb.StatusResponse], error) {
	return connect.NewResponse(s.backend.Status().toWire()), nil
}

// ChangeMembers implements forwardpbconnect.PeerServiceHandler.
func (s *service) ChangeMembers(
	ctx context.Context,
	r *connect.Request[forwardpb.ChangeMembersRequest],
) (*connect.Response[forwardpb.ChangeMembersResponse], error) {
	if err := s.backend.ChangeMembers(ctx, changeFromWire(r.Msg)); err != nil {
		return nil, changeAnswer(err)
	}
	return connect.NewResponse(&forwardpb.ChangeMembersResponse{}), nil
}

// LeaderGone implements forwardpbconnect.PeerServiceHandler.
func (s *service) LeaderGone(
	ctx context.Context,
	r *connect.Request[forwardpb.LeaderGoneRequest],
) (*connect.Response[forwardpb.LeaderGoneResponse], error) {
	v := s.backend.LeaderGone(ctx, Led{Leader: r.Msg.GetLeader(), Term: r.Msg.GetTerm()})
	return connect.NewResponse(&forwardpb.LeaderGoneResponse{Gone: v.Gone, LastTerm: v.LastTerm, LastIndex: v.LastIndex}), nil
}
