package reviews

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// rulesReviews list what the asker may do in a namespace.
type rulesReviews struct {
	rules   authorizer.RuleResolver
	catchUp func(ctx context.Context) error
}

func (r *rulesReviews) answer(
	ctx context.Context,
	review *authorizationv1.SelfSubjectRulesReview,
) (*authorizationv1.SelfSubjectRulesReview, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	if review.Spec.Namespace == "" {
		return nil, apierrors.NewBadRequest("no namespace on request")
	}
	if r.catchUp != nil {
		if err := r.catchUp(ctx); err != nil {
			return nil, apierrors.NewInternalError(err)
		}
	}
	resources, paths, incomplete, err := r.rules.RulesFor(ctx, who, review.Spec.Namespace)
	answer := &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
		ResourceRules: []authorizationv1.ResourceRule{}, NonResourceRules: []authorizationv1.NonResourceRule{}, Incomplete: incomplete,
	}}
	for _, rule := range resources {
		answer.Status.ResourceRules = append(answer.Status.ResourceRules, authorizationv1.ResourceRule{
			Verbs: rule.GetVerbs(), APIGroups: rule.GetAPIGroups(), Resources: rule.GetResources(), ResourceNames: rule.GetResourceNames(),
		})
	}
	for _, rule := range paths {
		answer.Status.NonResourceRules = append(answer.Status.NonResourceRules, authorizationv1.NonResourceRule{
			Verbs: rule.GetVerbs(), NonResourceURLs: rule.GetNonResourceURLs(),
		})
	}
	if err != nil {
		answer.Status.EvaluationError = err.Error()
	}
	return answer, nil
}
