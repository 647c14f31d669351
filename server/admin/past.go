package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/audit"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/server/named"
	"github.com/setpoint-io/setpoint/server/past"
)

// The parameters of historyPath and momentPath: they are in the path's query, so that the audit log has them.
const (
	kindParameter, namespaceParameter, nameParameter = "kind", "namespace", "name"
	sinceParameter, timeParameter                    = "since", "time"
	fromParameter, toParameter                       = "from", "to"
)

var errDiffWords = errors.New("want GET with from and to like " + time.RFC3339 + ", or without")

var errPurgeMay = errors.New("history is purged by administrators only")

var errHistoryWords = errors.New("want GET with kind and name, and a since like " + time.RFC3339 + " if there is one")

// serveHistory tells what was of an object; who may get the object may ask.
func (a *Admin) serveHistory(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := past.Question{Question: named.Question{
		Kind: query.Get(kindParameter), Namespace: query.Get(namespaceParameter), Name: query.Get(nameParameter),
	}}
	var err error
	q.Since, err = timeIn(query, sinceParameter)
	if err != nil || q.Kind == "" || q.Name == "" || r.Method != http.MethodGet {
		http.Error(w, errHistoryWords.Error(), http.StatusBadRequest)
		return
	}
	caller, _ := request.UserFrom(r.Context()) // mayAsk has seen it
	answer, err := a.config.Past.Answer(r.Context(), caller, q)
	tell(w, answer, err)
}

// serveMoment tells which revision a time had.
func (a *Admin) serveMoment(w http.ResponseWriter, r *http.Request) {
	at, err := time.Parse(time.RFC3339Nano, r.URL.Query().Get(timeParameter))
	if err != nil || r.Method != http.MethodGet {
		http.Error(w, "want GET with a time like "+time.RFC3339, http.StatusBadRequest)
		return
	}
	moment, err := a.config.Past.At(r.Context(), at)
	tell(w, moment, err)
}

// serveDiff tells what happened between two times, of what the caller may list.
func (a *Admin) serveDiff(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	span := past.Span{Kind: query.Get(kindParameter), Namespace: query.Get(namespaceParameter)}
	var errs [2]error
	span.From, errs[0] = timeIn(query, fromParameter)
	span.To, errs[1] = timeIn(query, toParameter)
	if errors.Join(errs[:]...) != nil || r.Method != http.MethodGet {
		http.Error(w, errDiffWords.Error(), http.StatusBadRequest)
		return
	}
	caller, _ := request.UserFrom(r.Context()) // mayAsk has seen it
	answer, err := a.config.Past.Diff(r.Context(), caller, span)
	tell(w, answer, err)
}

// servePurge removes what an object was. It is for administrators: whoever may delete an object could otherwise remove what they did to it.
func (a *Admin) servePurge(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := named.Question{Kind: query.Get(kindParameter), Namespace: query.Get(namespaceParameter), Name: query.Get(nameParameter)}
	caller, _ := request.UserFrom(r.Context()) // mayAsk has seen it
	if !auth.IsAdmin(caller) {
		http.Error(w, errPurgeMay.Error(), http.StatusForbidden)
		return
	}
	if q.Kind == "" || q.Name == "" || r.Method != http.MethodPost {
		http.Error(w, "want POST with kind and name", http.StatusBadRequest)
		return
	}
	ctx := storage.WithOrigin(r.Context(), storage.Origin{User: caller.GetName(), RequestID: string(audit.GetAuditIDTruncated(r.Context()))})
	answer, err := a.config.Past.Purge(ctx, q)
	if err == nil {
		a.config.Logger.Info("history is purged", "of", answer.Object.String(), "namespace", answer.Object.Namespace, "by", caller.GetName())
	}
	tell(w, answer, err)
}

// timeIn is the time in a parameter, zero if it is not there.
func timeIn(query url.Values, name string) (time.Time, error) {
	if query.Get(name) == "" {
		return time.Time{}, nil
	}
	return time.Parse(time.RFC3339Nano, query.Get(name))
}

func tell(w http.ResponseWriter, answer any, err error) {
	if err != nil {
		http.Error(w, reasonOf(err), codeOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone if this fails
}

func reasonOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return status.Status().Message
	}
	return err.Error()
}

// FetchHistory asks any server what was of an object, with the credentials of a kubeconfig.
func FetchHistory(ctx context.Context, config *rest.Config, q past.Question) (answer past.Answer, err error) {
	query := url.Values{kindParameter: {q.Kind}, namespaceParameter: {q.Namespace}, nameParameter: {q.Name}}
	if !q.Since.IsZero() {
		query.Set(sinceParameter, q.Since.UTC().Format(time.RFC3339Nano))
	}
	return answer, fetch(ctx, config, historyPath+"?"+query.Encode(), &answer)
}

// FetchMoment asks any server which revision a time had.
func FetchMoment(ctx context.Context, config *rest.Config, at time.Time) (moment past.Moment, err error) {
	query := url.Values{timeParameter: {at.UTC().Format(time.RFC3339Nano)}}
	return moment, fetch(ctx, config, momentPath+"?"+query.Encode(), &moment)
}

// FetchDiff asks any server what happened between two times.
func FetchDiff(ctx context.Context, config *rest.Config, s past.Span) (answer past.Difference, err error) {
	query := url.Values{kindParameter: {s.Kind}, namespaceParameter: {s.Namespace}}
	for name, at := range map[string]time.Time{fromParameter: s.From, toParameter: s.To} {
		if !at.IsZero() {
			query.Set(name, at.UTC().Format(time.RFC3339Nano))
		}
	}
	return answer, fetch(ctx, config, diffPath+"?"+query.Encode(), &answer)
}

// OrderPurge has a server remove what an object was, on all servers. The question is in the path, so that the audit log has it.
func OrderPurge(ctx context.Context, config *rest.Config, q named.Question) (purged past.Purged, err error) {
	query := url.Values{kindParameter: {q.Kind}, namespaceParameter: {q.Namespace}, nameParameter: {q.Name}}
	return purged, callCluster(ctx, config, purgePath+"?"+query.Encode(), struct{}{}, &purged)
}

// fetch is a GET with JSON out. An answer other than 200 is a *Refusal.
func fetch(ctx context.Context, config *rest.Config, path string, out any) error {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, http.NoBody)
	if err != nil {
		return fmt.Errorf("%s: %w", config.Host, err)
	}
	return answered(client, request, out)
}
