package admin

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/encryption"
	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/controllers/reconcile/pace"
	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/internal/trust/jointoken"
	"github.com/setpoint-io/setpoint/raftstore"
	"github.com/setpoint-io/setpoint/raftstore/history"
	"github.com/setpoint-io/setpoint/server/backups"
	"github.com/setpoint-io/setpoint/server/liveness"
	"github.com/setpoint-io/setpoint/server/past"
	"github.com/setpoint-io/setpoint/server/rotations"
	"github.com/setpoint-io/setpoint/server/why"
)

// The procedures of the ClusterService, in Connect's JSON form: POST with an object.
// backupPath answers GET with the stream of an archive.
const (
	statusPath  = "/setpoint.v1.ClusterService/Status"
	membersPath = "/setpoint.v1.ClusterService/Members"
	loopsPath   = "/setpoint.v1.ClusterService/Loops"
	pacePath    = "/setpoint.v1.ClusterService/Pace"
	lessonPath  = "/setpoint.v1.ClusterService/Lesson"
	whyPath     = "/setpoint.v1.ClusterService/Why"
	changePath  = "/setpoint.v1.ClusterService/Change"
	backupPath  = "/setpoint.v1.ClusterService/Backup"
	tokenPath   = "/setpoint.v1.ClusterService/ServerToken"
	rotatePath  = "/setpoint.v1.ClusterService/Rotate"
	heldPath    = "/setpoint.v1.ClusterService/Held"
	historyPath = "/setpoint.v1.ClusterService/History"
	momentPath  = "/setpoint.v1.ClusterService/Moment"
	purgePath   = "/setpoint.v1.ClusterService/Purge"
	diffPath    = "/setpoint.v1.ClusterService/Diff"
)

// Config is what the service tells of and acts on.
type Config struct {
	Log     *raftstore.Store
	Storage *storage.Store
	// Gossip, Certificates and Encryption are what this server knows of these now.
	Gossip       func() []liveness.GossipMember
	Certificates func() []trust.Expiry
	Encryption   func() *encryption.Status
	// Backups makes those of this server's schedule, nil without one.
	Backups *backups.Maker
	// Numbers count what the loops of this server do, Pace holds them; nil: nobody may. Peer reaches another server.
	Numbers *numbers.Ledger
	Pace    *pace.Pace
	Peer    func(name, address string) (*http.Client, string)
	// Lessons breaks and mends parts of the cluster; nil: nobody may.
	Lessons Lessons
	// Why explains an object to a caller.
	Why func(ctx context.Context, caller user.Info, q why.Question) (explain.Answer, error)
	// History is what this server keeps, nil if nothing; Past answers from it.
	History *history.History
	Past    *past.Past
	// ServerToken makes a token with which servers join.
	ServerToken func(ctx context.Context, wanted jointoken.Wanted) (*jointoken.Token, error)
	// Rotations are those of keys that this server follows.
	Rotations *rotations.Rotations
	Logger    *slog.Logger
}

// Admin is the ClusterService of one server.
type Admin struct{ config Config }

// New returns the service.
func New(c Config) *Admin { return &Admin{config: c} }

// Services are where it is reached. Orders and backups are for administrators, and may take minutes.
func (a *Admin) Services() []apiserver.Service {
	return []apiserver.Service{
		{Prefix: statusPath, Handler: answer(func(*http.Request) any { return a.Status() }), Allow: auth.IsServer},
		{Prefix: membersPath, Handler: answer(func(r *http.Request) any { return a.members(r.Context()) }), Allow: auth.IsServer},
		{Prefix: loopsPath, Handler: http.HandlerFunc(a.serveLoops), Allow: auth.IsServer},
		{Prefix: pacePath, Handler: http.HandlerFunc(a.servePace), Allow: auth.IsServer},
		{Prefix: lessonPath, Handler: http.HandlerFunc(a.serveLesson), Allow: auth.IsAdmin, Traffic: apiserver.Streams},
		{Prefix: whyPath, Handler: http.HandlerFunc(a.serveWhy), Allow: mayAsk},
		{Prefix: historyPath, Handler: http.HandlerFunc(a.serveHistory), Allow: mayAsk},
		{Prefix: diffPath, Handler: http.HandlerFunc(a.serveDiff), Allow: mayAsk},
		{Prefix: momentPath, Handler: http.HandlerFunc(a.serveMoment), Allow: mayAsk},
		{Prefix: purgePath, Handler: http.HandlerFunc(a.servePurge), Allow: mayAsk},
		{Prefix: changePath, Handler: http.HandlerFunc(a.serveChange), Allow: auth.IsAdmin, Traffic: apiserver.Streams},
		{Prefix: tokenPath, Handler: http.HandlerFunc(a.serveToken), Allow: auth.IsAdmin},
		{Prefix: rotatePath, Handler: http.HandlerFunc(a.serveRotate), Allow: auth.IsAdmin},
		{Prefix: heldPath, Handler: answer(func(*http.Request) any { return a.config.Rotations.Held() }), Allow: auth.IsServer},
		{Prefix: backupPath, Handler: a.backupHandler(), Allow: auth.IsAdmin, Traffic: apiserver.Streams},
	}
}

// Questions are the paths that change nothing and may be asked by a page for people, each with its method.
func Questions() map[string]string {
	return map[string]string{
		loopsPath: http.MethodPost, whyPath: http.MethodPost, historyPath: http.MethodGet, momentPath: http.MethodGet,
		lessonPath: http.MethodGet,
	}
}

// answer serves what tell says, to a POST.
func answer(tell func(*http.Request) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			http.Error(w, "use POST with an empty JSON object", http.StatusMethodNotAllowed)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(tell(r)) // the client is gone if this fails
	})
}
