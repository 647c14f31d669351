package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/rest"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// withExact has a GET of one object answer with what it was at a resourceVersion, where resourceVersionMatch=Exact asks for it in the words
// of a LIST, and with the refusals of a LIST. Upstream knows the parameter for lists only. Reads of the past are told whether the caller
// may see former namespaces of a name.
func (s *Server) withExact(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, known := request.RequestInfoFrom(r.Context())
		if !known || !info.IsResourceRequest || r.URL.RawQuery == "" || info.Verb != "get" && info.Verb != "list" {
			next.ServeHTTP(w, r)
			return
		}
		ctx := r.Context()
		if info.Namespace != "" {
			ctx = storage.WithFormer(ctx, s.mayEverywhere(info))
		}
		query := r.URL.Query()
		exact := query.Get("resourceVersionMatch") == string(metav1.ResourceVersionMatchExact)
		if exact && s.isComputed(info) {
			s.refuse(w, r, apierrors.NewBadRequest(fmt.Sprintf("%s are computed when they are asked for: they have no past", info.Resource)))
			return
		}
		if info.Verb == "get" && query.Get("resourceVersionMatch") != "" {
			if err := validExact(query); err != nil {
				s.refuse(w, r, err)
				return
			}
			if exact {
				ctx = storage.Exactly(ctx)
			}
		}
		next.ServeHTTP(w, r.WithContext(ctx))
	})
}

// isComputed reports whether objects of a kind are not stored, whoever computes them.
func (s *Server) isComputed(info *request.RequestInfo) bool {
	gr := schema.GroupResource{Group: info.APIGroup, Resource: info.Resource}
	return gr.Resource == "componentstatuses" && gr.Group == "" || slices.ContainsFunc(s.config.Computed, func(c rest.Computed) bool {
		return c.Kind.GroupResource() == gr
	})
}

// validExact judges the parameters as those of a LIST.
func validExact(query url.Values) error {
	errs := validation.ValidateListOptions(&internalversion.ListOptions{
		ResourceVersion: query.Get("resourceVersion"), ResourceVersionMatch: metav1.ResourceVersionMatch(query.Get("resourceVersionMatch")),
	}, false)
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "ListOptions"}, "", errs)
}

// mayEverywhere asks whether the caller may do the same in all namespaces.
func (s *Server) mayEverywhere(info *request.RequestInfo) func(context.Context) bool {
	return func(ctx context.Context) bool {
		caller, ok := request.UserFrom(ctx)
		return ok && s.allows(ctx, caller, info)
	}
}

func (s *Server) allows(ctx context.Context, caller user.Info, info *request.RequestInfo) bool {
	decision, _, err := s.config.Authorizer.Authorize(ctx, authorizer.AttributesRecord{
		User: caller, Verb: info.Verb, APIGroup: info.APIGroup, APIVersion: info.APIVersion, Resource: info.Resource,
		Subresource: info.Subresource, Name: info.Name, ResourceRequest: true,
	})
	return err == nil && decision == authorizer.DecisionAllow
}
