package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers/reconcile/numbers"
	"github.com/setpoint-io/setpoint/raftstore"
)

// errDeposed refuses a server that took this one for the leader: what it did before is not what the loops do now.
var errDeposed = errors.New("this server does not lead now, so its loops do not act: ask again")

// loopsForwardTimeout bounds the question to the server on which the loops act.
const loopsForwardTimeout = 2 * time.Second

// LoopsReport is what the control loops do, on the server on which they act.
type LoopsReport struct {
	// Server is the leader, on which they act; empty: there is none now. Term is that of its leadership.
	Server string `json:"server"`
	Term   uint64 `json:"term"`
	// At is the time of the answer, by that server's clock.
	At time.Time `json:"at"`
	// Loops are sorted by name.
	Loops []numbers.Report `json:"loops"`
	// Passes are the last ones that have ended, if they were asked for, oldest first: Next is the number of the one that follows, Missed
	// are between those that were asked for and the first of these, and forgotten.
	Passes []numbers.PassReport `json:"passes,omitempty"`
	Next   uint64               `json:"next,omitempty"`
	Missed uint64               `json:"missed,omitempty"`
	// Events are how many the loops made since that server's start, and what became of them.
	Events numbers.EventReport `json:"events"`
}

// loopsQuestion is what is asked.
type loopsQuestion struct {
	// Here wants the answer of the asked server only: another has found that it leads.
	Here bool `json:"here,omitempty"`
	// PassesFrom wants the passes from that number on; nil: none. A number that is larger than Next wants none and learns Next.
	PassesFrom *uint64 `json:"passesFrom,omitempty"`
}

// loopsHere are the reports of this server's loops, and which of them are held.
func (a *Admin) loopsHere(now time.Time) []numbers.Report {
	reports := a.config.Numbers.Reports(now)
	for i := range reports {
		reports[i].Paused, reports[i].Steps = a.config.Pace.State(reports[i].Queue)
	}
	return reports
}

// answerHere tells of the loops of this server, which are nobody's unless it leads: one that was deposed still remembers its passes.
func (a *Admin) answerHere(question loopsQuestion) (LoopsReport, error) {
	log, now := a.config.Log.Status(), a.config.Storage.Now()
	report := LoopsReport{Term: log.Term, At: now, Loops: []numbers.Report{}, Events: a.config.Numbers.Events.Report()}
	switch {
	case leads(log):
		report.Server, report.Loops = log.Name, a.loopsHere(now)
	case question.Here:
		return LoopsReport{}, errDeposed
	default:
		return report, nil
	}
	if from := question.PassesFrom; from != nil {
		report.Passes, report.Next, report.Missed = a.config.Numbers.PassesSince(*from)
	}
	return report, nil
}

// loopsWhereTheyAct asks the leader, unless this server leads or there is none.
func (a *Admin) loopsWhereTheyAct(ctx context.Context, question loopsQuestion) (LoopsReport, error) {
	if question.Here {
		return a.answerHere(question)
	}
	report := LoopsReport{}
	forwarded := question
	forwarded.Here = true
	if elsewhere, err := a.askLeader(ctx, loopsPath, forwarded, &report); elsewhere {
		return report, err
	}
	return a.answerHere(question)
}

// leads reports whether this server does.
func leads(log raftstore.Status) bool {
	return log.Name != "" && raftstore.MemberName(log.LeaderID) == log.Name
}

// askLeader asks the leader if that is another server, which it reports.
func (a *Admin) askLeader(ctx context.Context, path string, question, answer any) (elsewhere bool, err error) {
	log := a.config.Log.Status()
	for _, member := range log.Servers {
		if member.ID != log.LeaderID || raftstore.MemberName(member.ID) == log.Name {
			continue
		}
		ctx, cancel := context.WithTimeout(ctx, loopsForwardTimeout)
		defer cancel()
		client, base := a.config.Peer(raftstore.MemberName(member.ID), member.Address)
		if err := call(ctx, client, base+path, question, answer); err != nil {
			return true, fmt.Errorf("the loops act on %s, which does not tell: %w", raftstore.MemberName(member.ID), err)
		}
		return true, nil
	}
	return false, nil
}

// Reports are those of the loops, from the server on which they act.
func (a *Admin) Reports(ctx context.Context) ([]numbers.Report, error) {
	report, err := a.loopsWhereTheyAct(ctx, loopsQuestion{})
	return report.Loops, err
}

func (a *Admin) serveLoops(w http.ResponseWriter, r *http.Request) {
	var question loopsQuestion
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, changeBodyBytes)).Decode(&question)
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with a JSON object: %v", err), http.StatusBadRequest)
		return
	}
	report, err := a.loopsWhereTheyAct(r.Context(), question)
	if err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(report) // the client is gone if this fails
}

// FetchLoops asks any server what the loops do, with the credentials of a kubeconfig.
func FetchLoops(ctx context.Context, config *rest.Config) (LoopsReport, error) {
	report := LoopsReport{}
	err := callCluster(ctx, config, loopsPath, loopsQuestion{}, &report)
	return report, err
}

// FetchPasses is FetchLoops with the passes from a number on.
func FetchPasses(ctx context.Context, config *rest.Config, from uint64) (LoopsReport, error) {
	report := LoopsReport{}
	err := callCluster(ctx, config, loopsPath, loopsQuestion{PassesFrom: &from}, &report)
	return report, err
}
