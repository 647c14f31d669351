package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore"
)

const (
	// changeBodyBytes bounds a request for a change.
	changeBodyBytes = 64 << 10
	// changeTimeout bounds a change: a new server may have much to catch up with.
	changeTimeout = 5 * time.Minute
)

// Roles of a member.
const (
	RoleLeader  = "leader"
	RoleVoter   = "voter"
	RoleLearner = "learner"
)

// Member is one server of the control plane, for `setpoint cluster members`.
type Member struct {
	Name string `json:"name"`
	// ID is the server's life: the name alone for a founder that never lost its data.
	ID      string `json:"id"`
	Address string `json:"address"`
	// Role is RoleLeader, RoleVoter or RoleLearner.
	Role      string `json:"role"`
	Reachable bool   `json:"reachable"`
	// Applied is the last log entry in its state, Lag how many the others have more;
	// both 0 if it is not reachable.
	Applied uint64 `json:"applied"`
	Lag     uint64 `json:"lag"`
	// Since is when it got its present leader or, if it is not reachable, when the
	// leader heard of it last; absent if unknown.
	Since *time.Time `json:"since,omitempty"`
}

// Changes of the membership, as in MembershipChange.
const (
	ChangeJoin     = "join"
	ChangeRemove   = "remove"
	ChangeReplace  = "replace"
	ChangeTransfer = "transfer-leader"
)

// MembershipChange is an order of the administrator.
type MembershipChange struct {
	// Change is one of the Change constants.
	Change string `json:"change"`
	// Name is the server's; with ChangeTransfer it may be empty: any other one.
	Name string `json:"name,omitempty"`
	// Address is host:port, with ChangeJoin and ChangeReplace.
	Address string `json:"address,omitempty"`
}

// Validate says what is wrong with the order itself.
func (c *MembershipChange) Validate() error {
	switch c.Change {
	case ChangeTransfer:
		return nil
	case ChangeRemove:
		if c.Name == "" {
			return errors.New("the name of the server is missing")
		}
		return nil
	case ChangeJoin, ChangeReplace:
		_, err := trust.ParseServers(c.Name + "=" + c.Address)
		return err
	}
	return fmt.Errorf("unknown change %q", c.Change)
}

// members asks every member how it is.
func (a *Admin) members(ctx context.Context) []Member {
	var members []Member
	for _, m := range a.config.Log.Members(ctx) {
		member := Member{
			Name: m.Name, ID: m.ID, Address: m.Address, Role: roleOf(m),
			Reachable: m.Reachable, Applied: m.Applied, Lag: m.Lag,
		}
		if !m.Since.IsZero() {
			member.Since = new(m.Since.UTC().Truncate(time.Second))
		}
		members = append(members, member)
	}
	slices.SortFunc(members, func(a, b Member) int { return strings.Compare(a.ID, b.ID) })
	return members
}

func roleOf(m raftstore.Member) string {
	switch {
	case m.Leader:
		return RoleLeader
	case m.Voter:
		return RoleVoter
	}
	return RoleLearner
}

// change carries out an order, through whichever server leads.
func (a *Admin) change(ctx context.Context, c MembershipChange) error {
	a.config.Logger.Info("membership: ordered", "change", c.Change, "server", c.Name, "address", c.Address)
	switch c.Change {
	case ChangeJoin:
		return a.config.Log.AddMember(ctx, c.Name, c.Address)
	case ChangeRemove:
		return a.config.Log.RemoveMember(ctx, c.Name)
	case ChangeReplace:
		return a.config.Log.ReplaceMember(ctx, c.Name, c.Address)
	}
	return a.config.Log.MoveLeadership(ctx, c.Name)
}

func (a *Admin) serveChange(w http.ResponseWriter, r *http.Request) {
	var change MembershipChange
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, changeBodyBytes)).Decode(&change)
	if err == nil {
		err = change.Validate()
	}
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with a change of the membership: %v", err), http.StatusBadRequest)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), changeTimeout)
	defer cancel()
	if err := a.change(ctx, change); err != nil {
		http.Error(w, err.Error(), changeStatus(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}\n")
}

func changeStatus(err error) int {
	switch {
	case errors.Is(err, raftstore.ErrUnsafe), errors.Is(err, raftstore.ErrBadChange), errors.Is(err, raftstore.ErrNameTaken):
		return http.StatusConflict
	case errors.Is(err, raftstore.ErrUnknownServer):
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}
