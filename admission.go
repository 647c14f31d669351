package setpoint

import (
	"context"
	"net/http"

	k8sadmission "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/client-go/discovery/cached/memory"
	dynamicclient "k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/restmapper"

	"github.com/setpoint-io/setpoint/apiserver"
	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/admission/dynamic"
)

// newAdmission makes the chain that completes and judges writes. Webhooks and
// policies read the caches that the control loops read, which it makes too.
func (s *Server) newAdmission(ctx context.Context, judge authorizer.Authorizer) (k8sadmission.Interface, error) {
	config := s.restConfig(serverUser, 0)
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	anyKind, err := dynamicclient.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	if s.caches, err = newCaches(client, s.storage, s.warm); err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(client.Discovery()))
	s.typeChecker = dynamic.NewTypeChecker(s.storage, client.Discovery(), mapper)
	return admission.New(admission.Config{
		Store: s.storage, Authorizer: judge,
		Last: append([]k8sadmission.Interface{s.access.escalation}, dynamic.New(dynamic.Config{
			Store: s.storage, Informers: s.caches, Client: client, Dynamic: anyKind,
			Mapper: mapper, Authorizer: judge, Stop: ctx.Done(),
		})...),
	})
}

// inProcess calls the API of a server, which may be built after its client: parts of
// the API are its clients.
type inProcess struct {
	server *Server
	caller apiserver.Caller
}

// RoundTrip implements http.RoundTripper.
func (t inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.server.api.Transport(t.caller).RoundTrip(r)
}
