package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/explain"
	"github.com/setpoint-io/setpoint/server/why"
)

// mayAsk: everybody with a name may ask; of which objects is for the answer to decide.
func mayAsk(u user.Info) bool { return u.GetName() != user.Anonymous }

func (a *Admin) serveWhy(w http.ResponseWriter, r *http.Request) {
	var question why.Question
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, changeBodyBytes)).Decode(&question)
	if err == nil && (question.Kind == "" || question.Name == "") {
		err = errors.New("kind and name are required")
	}
	if err != nil || r.Method != http.MethodPost {
		http.Error(w, fmt.Sprintf("want POST with a JSON object: %v", err), http.StatusBadRequest)
		return
	}
	caller, _ := request.UserFrom(r.Context()) // mayAsk has seen it
	answer, err := a.config.Why(r.Context(), caller, question)
	if err != nil {
		http.Error(w, err.Error(), codeOf(err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer) // the client is gone if this fails
}

// codeOf is the status of an error of the API.
func codeOf(err error) int {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return int(status.Status().Code)
	}
	return http.StatusServiceUnavailable
}

// FetchWhy asks any server why an object is as it is, with the credentials of a kubeconfig.
func FetchWhy(ctx context.Context, config *rest.Config, q why.Question) (explain.Answer, error) {
	answer := explain.Answer{}
	err := callCluster(ctx, config, whyPath, q, &answer)
	return answer, err
}
