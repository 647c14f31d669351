package reviews

import (
	"context"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/apiserver/resource"
)

// Config has the authorizer and authenticators that the reviews ask. All fields but CatchUp are required.
type Config struct {
	Authorizer authorizer.Authorizer
	Rules      authorizer.RuleResolver
	// CatchUp waits until Rules knows all that was written in the cluster before the
	// call: a list of what one may is also one of what one may not.
	CatchUp func(ctx context.Context) error
	// Tokens tells whose a bearer token is.
	Tokens authenticator.Token
	// Audiences are those of the API, for questions that name none.
	Audiences authenticator.Audiences
}

// Review is a kind that is created and never stored.
type Review struct {
	Kind *resource.Any
	// Answer may change the question, which is the caller's, and return it.
	Answer func(ctx context.Context, question runtime.Object) (runtime.Object, error)
}

// New returns all reviews.
func New(config Config) []Review {
	access := &accessReviews{config.Authorizer}
	rules := &rulesReviews{config.Rules, config.CatchUp}
	tokens := &tokenReviews{config.Tokens, config.Audiences}
	who, may := authenticationv1.SchemeGroupVersion, authorizationv1.SchemeGroupVersion
	return []Review{
		review(
			who.WithKind("SelfSubjectReview"),
			false,
			func() *authenticationv1.SelfSubjectReview { return &authenticationv1.SelfSubjectReview{} },
			answerSelf,
		),
		review(
			who.WithKind("TokenReview"),
			false,
			func() *authenticationv1.TokenReview { return &authenticationv1.TokenReview{} },
			tokens.answer,
		),
		review(
			may.WithKind("LocalSubjectAccessReview"),
			true,
			func() *authorizationv1.LocalSubjectAccessReview { return &authorizationv1.LocalSubjectAccessReview{} },
			access.answerLocal,
		),
		review(
			may.WithKind("SelfSubjectAccessReview"),
			false,
			func() *authorizationv1.SelfSubjectAccessReview { return &authorizationv1.SelfSubjectAccessReview{} },
			access.answerSelf,
		),
		review(
			may.WithKind("SelfSubjectRulesReview"),
			false,
			func() *authorizationv1.SelfSubjectRulesReview { return &authorizationv1.SelfSubjectRulesReview{} },
			rules.answer,
		),
		review(
			may.WithKind("SubjectAccessReview"),
			false,
			func() *authorizationv1.SubjectAccessReview { return &authorizationv1.SubjectAccessReview{} },
			access.answer,
		),
	}
}

// Kinds are the kinds of reviews.
func Kinds(reviews []Review) []*resource.Any {
	kinds := make([]*resource.Any, len(reviews))
	for i, r := range reviews {
		kinds[i] = r.Kind
	}
	return kinds
}

func review[T resource.Object](
	gvk schema.GroupVersionKind,
	namespaced bool,
	empty func() T,
	answer func(context.Context, T) (T, error),
) Review {
	return Review{
		Kind: resource.Erase(resource.Kind[T]{
			GroupVersionKind: gvk, Plural: strings.ToLower(gvk.Kind) + "s", ClusterScoped: !namespaced, CreateOnly: true,
			New: empty, NewList: func() runtime.Object { return empty() },
		}),
		Answer: func(ctx context.Context, question runtime.Object) (runtime.Object, error) {
			q, ok := question.(T)
			if !ok {
				return nil, apierrors.NewBadRequest(fmt.Sprintf("not a %s: %T", gvk.Kind, question))
			}
			return answer(ctx, q)
		},
	}
}
