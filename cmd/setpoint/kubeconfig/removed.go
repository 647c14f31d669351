package kubeconfig

import (
	"net/http"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/removed"
)

// SayIfRemoved makes a request fail with a *removed.Error at a server that was removed from its cluster, so that another one is asked.
// Before that it calls told, if any.
func SayIfRemoved(config *rest.Config, told func(error)) {
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return untilRemoved{next, told} })
}

type untilRemoved struct {
	next http.RoundTripper
	told func(error)
}

// RoundTrip implements http.RoundTripper.
func (u untilRemoved) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := u.next.RoundTrip(r)
	if err != nil {
		return response, err
	}
	said := removed.Told(response)
	if said == nil {
		return response, nil
	}
	_ = response.Body.Close() // it was read
	if u.told != nil {
		u.told(said)
	}
	return nil, said
}
