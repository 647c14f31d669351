package reviews

import (
	"context"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// answerSelf tells the asker who he is.
func answerSelf(ctx context.Context, _ *authenticationv1.SelfSubjectReview) (*authenticationv1.SelfSubjectReview, error) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return nil, apierrors.NewBadRequest("no user present on request")
	}
	return &authenticationv1.SelfSubjectReview{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.NewTime(time.Now())},
		Status:     authenticationv1.SelfSubjectReviewStatus{UserInfo: describe(who)},
	}, nil
}

// tokenReviews tell whose a token is.
type tokenReviews struct {
	tokens    authenticator.Token
	audiences authenticator.Audiences
}

func (r *tokenReviews) answer(ctx context.Context, review *authenticationv1.TokenReview) (*authenticationv1.TokenReview, error) {
	if review.Spec.Token == "" {
		return nil, apierrors.NewBadRequest("token is required for TokenReview in authentication")
	}
	audiences := authenticator.Audiences(review.Spec.Audiences)
	if len(audiences) == 0 {
		audiences = r.audiences
	}
	found, ok, err := r.tokens.AuthenticateToken(authenticator.WithAudiences(ctx, audiences), review.Spec.Token)
	if unavailable := storage.Unavailability(err); unavailable != nil {
		return nil, unavailable // whoever asks would believe that nobody knows the token
	}
	review.Status = authenticationv1.TokenReviewStatus{Authenticated: ok}
	switch {
	case err != nil:
		review.Status.Error = err.Error()
	case !ok: // nobody knows it
		review.Status.Error = "invalid bearer token"
	}
	if ok {
		review.Status.User, review.Status.Audiences = describe(found.User), found.Audiences
	}
	return review, nil
}

func describe(who user.Info) authenticationv1.UserInfo {
	info := authenticationv1.UserInfo{
		Username: who.GetName(), UID: who.GetUID(), Groups: who.GetGroups(), Extra: map[string]authenticationv1.ExtraValue{},
	}
	for key, values := range who.GetExtra() {
		info.Extra[key] = values
	}
	return info
}
