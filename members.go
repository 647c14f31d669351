package setpoint

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth/pki"
	"github.com/setpoint-io/setpoint/raftstore"
)

// Connect procedures in their JSON form, for `setpoint cluster members` and the
// orders on the membership.
const (
	membersPath = "/setpoint.v1.ClusterService/Members"
	changePath  = "/setpoint.v1.ClusterService/Change"
)

const (
	// changeBodyBytes bounds a request for a change, and an answer that refuses it.
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
		_, err := pki.ParseServers(c.Name + "=" + c.Address)
		return err
	}
	return fmt.Errorf("unknown change %q", c.Change)
}

func (s *Server) memberServices() []apiserver.Service {
	return []apiserver.Service{
		{Prefix: membersPath, Handler: http.HandlerFunc(s.serveMembers), Allow: isServer},
		{Prefix: changePath, Handler: http.HandlerFunc(s.serveChange), Allow: isAdmin, Audited: true},
	}
}

func isAdmin(u user.Info) bool { return slices.Contains(u.GetGroups(), user.SystemPrivilegedGroup) }

// Members asks every member how it is.
func (s *Server) Members(ctx context.Context) []Member {
	var members []Member
	for _, m := range s.log.Members(ctx) {
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

// Change carries out an order, through whichever server leads.
func (s *Server) Change(ctx context.Context, c MembershipChange) error {
	s.config.Logger.Info("membership: ordered", "change", c.Change, "server", c.Name, "address", c.Address)
	switch c.Change {
	case ChangeJoin:
		return s.log.AddMember(ctx, c.Name, c.Address)
	case ChangeRemove:
		return s.log.RemoveMember(ctx, c.Name)
	case ChangeReplace:
		return s.log.ReplaceMember(ctx, c.Name, c.Address)
	}
	return s.log.MoveLeadership(ctx, c.Name)
}

func (s *Server) serveMembers(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		http.Error(w, "use POST with an empty JSON object", http.StatusMethodNotAllowed)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Members(r.Context())) // the client is gone if this fails
}

func (s *Server) serveChange(w http.ResponseWriter, r *http.Request) {
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
	if err := s.Change(ctx, change); err != nil {
		http.Error(w, err.Error(), changeStatus(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, "{}\n")
}

func changeStatus(err error) int {
	switch {
	case errors.Is(err, raftstore.ErrUnsafe), errors.Is(err, raftstore.ErrBadChange):
		return http.StatusConflict
	case errors.Is(err, raftstore.ErrUnknownServer):
		return http.StatusNotFound
	}
	return http.StatusServiceUnavailable
}

// FetchMembers asks one server for the members with the credentials of a kubeconfig.
func FetchMembers(ctx context.Context, config *rest.Config) ([]Member, error) {
	var members []Member
	return members, callCluster(ctx, config, membersPath, struct{}{}, &members)
}

// OrderChange has one server carry out a change of the membership, which may take
// as long as a new server needs to catch up.
func OrderChange(ctx context.Context, config *rest.Config, c MembershipChange) error {
	return callCluster(ctx, config, changePath, c, &struct{}{})
}

// Refusal is a server's answer that it will not, and why.
type Refusal struct {
	StatusCode int
	Reason     string
}

// Error implements error.
func (r *Refusal) Error() string { return r.Reason }

// callCluster is callServer with the credentials of a kubeconfig.
func callCluster(ctx context.Context, config *rest.Config, path string, in, out any) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	return callServer(ctx, client, config.Host+path, in, out)
}

// callServer is one call with JSON in and out. An answer other than 200 is a
// *Refusal.
func callServer(ctx context.Context, client *http.Client, url string, in, out any) error {
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusOK {
		return json.NewDecoder(response.Body).Decode(out)
	}
	text, _ := io.ReadAll(io.LimitReader(response.Body, changeBodyBytes))
	return &Refusal{StatusCode: response.StatusCode, Reason: strings.TrimSpace(string(text))}
}

// servers are all replicas now and where they are: members of the log, at the
// operator's address where the list has one.
func (s *Server) servers() []pki.Server {
	members := s.log.Status().Servers
	if len(members) == 0 {
		return s.config.InitialServers
	}
	var servers []pki.Server
	for _, member := range members {
		server := pki.Server{Name: raftstore.MemberName(member.ID), Endpoint: member.Address}
		for _, initial := range s.config.InitialServers {
			if initial.Name == server.Name {
				server = initial
			}
		}
		if !slices.ContainsFunc(servers, func(other pki.Server) bool { return other.Name == server.Name }) {
			servers = append(servers, server)
		}
	}
	return servers
}
