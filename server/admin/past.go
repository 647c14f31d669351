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
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/named"
	"github.com/setpoint-io/setpoint/server/past"
)

// The parameters of historyPath and momentPath: they are in the path's query, so that the audit log has them.
const (
	kindParameter, namespaceParameter, nameParameter = "kind", "namespace", "name"
	sinceParameter, timeParameter                    = "since", "time"
)

var errHistoryWords = errors.New("want GET with kind and name, and a since like " + time.RFC3339 + " if there is one")

// serveHistory tells what was of an object; who may get the object may ask.
func (a *Admin) serveHistory(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	q := past.Question{Question: named.Question{
		Kind: query.Get(kindParameter), Namespace: query.Get(namespaceParameter), Name: query.Get(nameParameter),
	}}
	var err error
	if since := query.Get(sinceParameter); since != "" {
		q.Since, err = time.Parse(time.RFC3339Nano, since)
	}
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
