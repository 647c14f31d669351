package rest

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/endpoints/handlers"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/apiserver/resource"
	"github.com/setpoint-io/setpoint/apiserver/storage"
)

// The life of a token, in seconds.
const (
	defaultTokenSeconds = 3600
	minTokenSeconds     = 600
	maxTokenSeconds     = 1 << 32
)

var (
	accountsResource = corev1.SchemeGroupVersion.WithResource("serviceaccounts")
	podsResource     = corev1.SchemeGroupVersion.WithResource("pods")
	secretsResource  = corev1.SchemeGroupVersion.WithResource("secrets")
	tokenRequestKind = authenticationv1.SchemeGroupVersion.WithKind("TokenRequest")
)

// tokenStore serves serviceaccounts/token: a token is made, nothing is stored.
type tokenStore struct {
	accounts *Store
	objects  *storage.Store
	issuer   *tokens.Issuer
}

var (
	_ rest.NamedCreater                   = tokenStore{}
	_ rest.SubresourceObjectMetaPreserver = tokenStore{}
)

func (e *Endpoints) addToken(kind *resource.Any, accounts *Store) error {
	if e.config.Tokens == nil {
		return nil
	}
	scope, err := e.scope(kind, "token", tokenRequestKind, accounts, nil)
	if err != nil {
		return err
	}
	store := tokenStore{accounts, e.config.Storage, e.config.Tokens}
	e.add(kind, "token", map[string]http.HandlerFunc{
		"create": once(func() http.HandlerFunc { return handlers.CreateNamedResource(store, scope, e.config.Admission) }),
	})
	return nil
}

// New implements rest.Storage.
func (t tokenStore) New() runtime.Object { return &authenticationv1.TokenRequest{} }

// Destroy implements rest.Storage.
func (t tokenStore) Destroy() {}

// PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate implements
// rest.SubresourceObjectMetaPreserver: the uid asked for is a precondition.
func (t tokenStore) PreserveRequestObjectMetaSystemFieldsOnSubresourceCreate() bool { return true }

// Create implements rest.NamedCreater.
func (t tokenStore) Create(ctx context.Context, name string, obj runtime.Object, validate rest.ValidateObjectFunc,
	_ *metav1.CreateOptions) (runtime.Object, error) {
	asked, ok := obj.(*authenticationv1.TokenRequest)
	if !ok {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("not a TokenRequest: %T", obj))
	}
	namespace := t.accounts.namespace(ctx)
	if errs := validateTokenTarget(asked, namespace, name); len(errs) > 0 {
		return nil, apierrors.NewInvalid(tokenRequestKind.GroupKind(), name, errs)
	}
	found, err := t.accounts.table.Get(ctx, namespace, name, "")
	if err != nil {
		return nil, err
	}
	account := found.Object().(*corev1.ServiceAccount)
	if err := t.complete(asked, account); err != nil {
		return nil, err
	}
	if validate != nil {
		if err := validate(ctx, asked.DeepCopyObject()); err != nil {
			return nil, err
		}
	}
	return t.issue(ctx, asked, account)
}

func validateTokenTarget(asked *authenticationv1.TokenRequest, namespace, name string) field.ErrorList {
	var errs field.ErrorList
	if asked.Name != "" && asked.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), asked.Name, "must match the service account name if specified"))
	}
	if asked.Namespace != "" && asked.Namespace != namespace {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "namespace"), asked.Namespace, "must match the service account namespace if specified"))
	}
	return errs
}

// complete fills in what the request left open and judges the rest.
func (t tokenStore) complete(asked *authenticationv1.TokenRequest, account *corev1.ServiceAccount) error {
	if asked.UID != "" && asked.UID != account.UID {
		return apierrors.NewConflict(schema.GroupResource{Group: tokenRequestKind.Group, Resource: tokenRequestKind.Kind}, account.Name,
			fmt.Errorf("the UID in the token request (%s) does not match the UID of the service account (%s)", asked.UID, account.UID))
	}
	asked.Name, asked.Namespace, asked.UID = account.Name, account.Namespace, account.UID
	asked.CreationTimestamp = metav1.NewTime(t.objects.Now())
	asked.Status = authenticationv1.TokenRequestStatus{}
	if len(asked.Spec.Audiences) == 0 {
		asked.Spec.Audiences = t.issuer.Audiences()
	}
	if asked.Spec.ExpirationSeconds == nil {
		asked.Spec.ExpirationSeconds = new(int64(defaultTokenSeconds))
	}
	var errs field.ErrorList
	path := field.NewPath("spec", "expirationSeconds")
	switch seconds := *asked.Spec.ExpirationSeconds; {
	case seconds < minTokenSeconds:
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration less than 10 minutes"))
	case seconds > maxTokenSeconds:
		errs = append(errs, field.Invalid(path, seconds, "may not specify a duration larger than 2^32 seconds"))
	}
	if len(asked.Spec.Attestations) > 0 {
		errs = field.ErrorList{field.Invalid(field.NewPath("spec", "attestations"), asked.Spec.Attestations,
			"attestations may only be specified with a webhook bound object reference")} // which no token can be bound to here
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(tokenRequestKind.GroupKind(), "", errs)
	}
	return nil
}

func (t tokenStore) issue(ctx context.Context, asked *authenticationv1.TokenRequest,
	account *corev1.ServiceAccount) (runtime.Object, error) {
	bound, err := t.bind(ctx, asked.Spec.BoundObjectRef, account)
	if err != nil {
		return nil, err
	}
	now, life := t.objects.Now(), time.Duration(*asked.Spec.ExpirationSeconds)*time.Second
	token, err := t.issuer.Issue(account, bound, asked.Spec.Audiences, life, now)
	if err != nil {
		return nil, apierrors.NewInternalError(fmt.Errorf("failed to generate token: %w", err))
	}
	asked.Status = authenticationv1.TokenRequestStatus{Token: token, ExpirationTimestamp: metav1.NewTime(now.Add(life))}
	return asked, nil
}

// bind reads what the token is to be bound to, in the newest state: a token for an
// object of former days would be refused at its first use.
func (t tokenStore) bind(ctx context.Context, ref *authenticationv1.BoundObjectReference,
	account *corev1.ServiceAccount) (tokens.Binding, error) {
	if err := judgeNodeToken(ctx, ref, account); err != nil || ref == nil {
		return tokens.Binding{}, err
	}
	gvk := schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind)
	var bound tokens.Binding
	var uid types.UID
	var err error
	switch gvk.GroupKind() {
	case schema.GroupKind{Kind: "Pod"}:
		bound, uid, err = t.bindPod(ctx, ref, account)
	case schema.GroupKind{Kind: "Secret"}:
		if bound.Secret, err = read[*corev1.Secret](ctx, t.objects, secretsResource, account.Namespace, ref.Name); err == nil {
			uid = bound.Secret.UID
		}
	case schema.GroupKind{Kind: "Node"}:
		if bound.Node, err = read[*corev1.Node](ctx, t.objects, nodesResource, "", ref.Name); err == nil {
			uid = bound.Node.UID
		}
	default:
		err = apierrors.NewBadRequest("cannot bind token to object of type " + gvk.String())
	}
	if err == nil && ref.UID != "" && ref.UID != uid {
		err = apierrors.NewConflict(schema.GroupResource{Group: gvk.Group, Resource: gvk.Kind}, ref.Name,
			fmt.Errorf("the UID in the bound object reference (%s) does not match the UID in record. The object might have been deleted and then recreated", ref.UID))
	}
	return bound, err
}

// bindPod binds to a pod, and names its node.
func (t tokenStore) bindPod(ctx context.Context, ref *authenticationv1.BoundObjectReference,
	account *corev1.ServiceAccount) (tokens.Binding, types.UID, error) {
	pod, err := read[*corev1.Pod](ctx, t.objects, podsResource, account.Namespace, ref.Name)
	if err != nil {
		return tokens.Binding{}, "", err
	}
	if pod.Spec.ServiceAccountName != account.Name {
		return tokens.Binding{}, "", apierrors.NewBadRequest(fmt.Sprintf("cannot bind token for serviceaccount %q to pod running with different serviceaccount name.", account.Name))
	}
	if node, isNode := nodeAsking(ctx); isNode && pod.Spec.NodeName != node {
		return tokens.Binding{}, "", refuseNode(account, errors.New("node requested token bound to a pod scheduled on a different node"))
	}
	node, err := t.nodeOf(ctx, pod)
	return tokens.Binding{Pod: pod, Node: node}, pod.UID, err
}

func nodeAsking(ctx context.Context) (node string, ok bool) {
	who, ok := request.UserFrom(ctx)
	if !ok {
		return "", false
	}
	return auth.NodeOf(who)
}

// judgeNodeToken: a node gets tokens for its pods only, each for the very pod.
func judgeNodeToken(ctx context.Context, ref *authenticationv1.BoundObjectReference, account *corev1.ServiceAccount) error {
	_, isNode := nodeAsking(ctx)
	switch {
	case !isNode:
		return nil
	case ref == nil || ref.Kind != "Pod" || ref.APIVersion != "v1":
		return refuseNode(account, errors.New("node requested token not bound to a pod"))
	case ref.UID == "":
		return refuseNode(account, errors.New("node requested token with a pod binding without a uid"))
	}
	return nil
}

func refuseNode(account *corev1.ServiceAccount, why error) error {
	return apierrors.NewForbidden(accountsResource.GroupResource(), account.Name, why)
}

// nodeOf is the node of a pod, for the token to name it; of one that is gone, the name.
func (t tokenStore) nodeOf(ctx context.Context, pod *corev1.Pod) (*corev1.Node, error) {
	if pod.Spec.NodeName == "" {
		return nil, nil
	}
	node, err := read[*corev1.Node](ctx, t.objects, nodesResource, "", pod.Spec.NodeName)
	if apierrors.IsNotFound(err) {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: pod.Spec.NodeName}}, nil
	}
	return node, err
}

// read returns the newest state of an object. It is shared: do not change it.
func read[T resource.Object](ctx context.Context, objects *storage.Store, gvr schema.GroupVersionResource, namespace,
	name string) (T, error) {
	cached, err := objects.Table(gvr).Get(ctx, namespace, name, "")
	if err != nil {
		var none T
		return none, err
	}
	return cached.Object().(T), nil
}
