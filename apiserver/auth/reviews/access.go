package reviews

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// accessReviews ask the authorizer.
type accessReviews struct{ authorizer authorizer.Authorizer }

func (r *accessReviews) answer(
	ctx context.Context,
	review *authorizationv1.SubjectAccessReview,
) (*authorizationv1.SubjectAccessReview, error) {
	errs := append(validateSpec(&review.Spec), validateEmpty(review.ObjectMeta, "must be empty")...)
	if len(errs) > 0 {
		return nil, invalid("SubjectAccessReview", errs)
	}
	review.Status = r.judge(ctx, &review.Spec)
	return review, nil
}

func (r *accessReviews) answerLocal(
	ctx context.Context,
	review *authorizationv1.LocalSubjectAccessReview,
) (*authorizationv1.LocalSubjectAccessReview, error) {
	meta := review.ObjectMeta
	meta.Namespace = ""
	errs := append(validateSpec(&review.Spec), validateEmpty(meta, "must be empty except for namespace")...)
	if asked := review.Spec.ResourceAttributes; asked != nil && asked.Namespace != review.Namespace {
		errs = append(
			errs,
			field.Invalid(field.NewPath("spec.resourceAttributes.namespace"), asked.Namespace, "must match metadata.namespace"),
		)
	}
	if review.Spec.NonResourceAttributes != nil {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("spec.nonResourceAttributes"),
				review.Spec.NonResourceAttributes,
				"disallowed on this kind of request",
			),
		)
	}
	if len(errs) > 0 {
		return nil, invalid("LocalSubjectAccessReview", errs)
	}
	review.Status = r.judge(ctx, &review.Spec)
	return review, nil
}

func (r *accessReviews) answerSelf(
	ctx context.Context,
	review *authorizationv1.SelfSubjectAccessReview,
) (*authorizationv1.SelfSubjectAccessReview, error) {
	asked := authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: review.Spec.ResourceAttributes, NonResourceAttributes: review.Spec.NonResourceAttributes,
	}
	errs := append(validateAttributes(&asked), validateEmpty(review.ObjectMeta, "must be empty")...)
	if len(errs) > 0 {
		return nil, invalid("SelfSubjectAccessReview", errs)
	}
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	review.Status = r.judgeAs(ctx, who, &asked)
	return review, nil
}

func (r *accessReviews) judge(
	ctx context.Context,
	asked *authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	who := &user.DefaultInfo{Name: asked.User, UID: asked.UID, Groups: asked.Groups}
	if asked.Extra != nil {
		who.Extra = make(map[string][]string, len(asked.Extra))
		for key, values := range asked.Extra {
			who.Extra[key] = values
		}
	}
	return r.judgeAs(ctx, who, asked)
}

func (r *accessReviews) judgeAs(
	ctx context.Context,
	who user.Info,
	asked *authorizationv1.SubjectAccessReviewSpec,
) authorizationv1.SubjectAccessReviewStatus {
	attributes, problems := attributesOf(who, asked)
	decision, reason, err := r.authorizer.Authorize(ctx, attributes)
	if err != nil {
		problems = append([]string{err.Error()}, problems...)
	}
	return authorizationv1.SubjectAccessReviewStatus{
		Allowed: decision == authorizer.DecisionAllow, Denied: decision == authorizer.DecisionDeny,
		Reason: reason, EvaluationError: strings.Join(problems, ", "),
	}
}

func validateSpec(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	errs := validateAttributes(spec)
	if spec.User == "" && len(spec.Groups) == 0 {
		errs = append(errs, field.Invalid(field.NewPath("spec.user"), spec.User, "at least one of user or group must be specified"))
	}
	return errs
}

func validateAttributes(spec *authorizationv1.SubjectAccessReviewSpec) field.ErrorList {
	var errs field.ErrorList
	if (spec.ResourceAttributes == nil) == (spec.NonResourceAttributes == nil) {
		errs = append(
			errs,
			field.Invalid(
				field.NewPath("spec"),
				spec.NonResourceAttributes,
				"exactly one of nonResourceAttributes or resourceAttributes must be specified",
			),
		)
	}
	if asked := spec.ResourceAttributes; asked != nil {
		errs = append(errs, validateSelectors(asked, field.NewPath("spec.resourceAttributes"))...)
	}
	return errs
}

func validateEmpty(meta metav1.ObjectMeta, message string) field.ErrorList {
	meta.ManagedFields = nil
	if apiequality.Semantic.DeepEqual(metav1.ObjectMeta{}, meta) {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("metadata"), meta, message)}
}

func invalid(kind string, errs field.ErrorList) error {
	return apierrors.NewInvalid(authorizationv1.SchemeGroupVersion.WithKind(kind).GroupKind(), "", errs)
}
