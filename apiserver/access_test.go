package apiserver

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	upstream "k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac"
	"github.com/setpoint-io/setpoint/apiserver/auth/rbac/policy"
	"github.com/setpoint-io/setpoint/apiserver/auth/reviews"
	"github.com/setpoint-io/setpoint/apiserver/auth/tokens"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// newGuardedServer is a server with all its judges, and the roles of every cluster.
func newGuardedServer(t *testing.T) (*Server, kubernetes.Interface) {
	t.Helper()
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := tokens.NewKeys(key)
	if err != nil {
		t.Fatal(err)
	}
	logger := slog.New(slog.DiscardHandler)
	roles, workloads := rbac.New(config.Storage, logger), auth.NewWorkloads(config.Storage, logger)
	follow(t, roles.Run)
	follow(t, workloads.Run)
	config.Tokens = tokens.NewIssuer(keys.Now(), tokens.DefaultIssuer)
	bearer := auth.NewTokens(tokens.NewAuthenticator(config.Tokens, config.Storage))
	config.Authenticator = auth.NewAuthenticator(nil, nil, auth.Bearer(bearer))
	catchUp := func(ctx context.Context) error {
		if err := roles.CatchUp(ctx, config.Storage.Revision()); err != nil {
			return err
		}
		return workloads.CatchUp(ctx, config.Storage.Revision())
	}
	config.Authorizer = auth.NewAuthorizer(auth.Config{Workloads: workloads, Next: roles, CatchUp: catchUp})
	config.Reviews = reviews.New(reviews.Config{Authorizer: config.Authorizer, Rules: roles, CatchUp: catchUp, Tokens: bearer, Audiences: config.Tokens.Audiences()})
	config.Admission, err = admission.New(admission.Config{
		Store: config.Storage, Authorizer: config.Authorizer, Last: []upstream.Interface{rbac.NewEscalation(roles, config.Authorizer)},
	})
	if err != nil {
		t.Fatal(err)
	}
	server, client := startServer(t, config)
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "kube-system"}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := policy.Reconcile(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func follow(t *testing.T, run func(context.Context)) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-done
	})
}

// as is a client that shows a token.
func as(t *testing.T, server *Server, token string) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(&rest.Config{
		Host: "https://in-process", QPS: -1, BearerToken: token, Transport: &transport{server: server},
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func token(t *testing.T, client kubernetes.Interface, account string, request *authenticationv1.TokenRequest) string {
	t.Helper()
	if request == nil {
		request = &authenticationv1.TokenRequest{}
	}
	got, err := client.CoreV1().ServiceAccounts("default").CreateToken(t.Context(), account, request, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status.Token
}

// TestReconcileWritesOnce: what is there already is left alone; what somebody took away comes back.
func TestReconcileWritesOnce(t *testing.T) {
	server, client := newGuardedServer(t)
	before := server.config.Storage.Revision()
	if err := policy.Reconcile(t.Context(), client); err != nil || server.config.Storage.Revision() != before {
		t.Errorf("a second time wrote %d times, %v", server.config.Storage.Revision()-before, err)
	}
	binding, err := client.RbacV1().ClusterRoleBindings().Get(t.Context(), "system:discovery", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	binding.Subjects = []rbacv1.Subject{{Kind: "User", APIGroup: rbacv1.GroupName, Name: "more"}}
	if _, err := client.RbacV1().ClusterRoleBindings().Update(t.Context(), binding, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := policy.Reconcile(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	if binding, err = client.RbacV1().ClusterRoleBindings().Get(t.Context(), "system:discovery", metav1.GetOptions{}); err != nil || len(binding.Subjects) != 2 {
		t.Errorf("subjects %v, %v", binding.Subjects, err)
	}
}

// TestATokenIsAUser: from the request for a token to a request with it.
func TestATokenIsAUser(t *testing.T) {
	server, client := newGuardedServer(t)
	bare := as(t, server, token(t, client, "default", nil))
	who, err := bare.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Username != "system:serviceaccount:default:default" {
		t.Fatalf("%+v, %v", who, err)
	}
	if _, err := bare.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without a role: %v", err)
	}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "b"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:aggregate-to-view"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "default"}},
	}
	if _, err := client.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := bare.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("with a role: %v", err)
	}
	if _, err := bare.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("in another namespace: %v", err)
	}
	if _, err := as(t, server, "x.y.z").CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
		t.Errorf("with a token of nobody: %v", err)
	}
}

func TestTokenRequests(t *testing.T) {
	server, client := newGuardedServer(t)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		NodeName: "a", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	nodeA := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	nodeB := &user.DefaultInfo{Name: "system:node:b", Groups: []string{"system:nodes", "system:authenticated"}}
	const path = "/api/v1/namespaces/default/serviceaccounts/default/token"
	bound := func(more string) string {
		return `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Pod","name":"p"` + more + `}}}`
	}
	uid := `,"uid":"` + string(pod.UID) + `"`
	for name, c := range map[string]struct {
		call
		code int
		text string
	}{
		"plain":                    {call{body: `{}`}, 201, `"audiences":["https://kubernetes.default.svc.cluster.local"]`},
		"for others":               {call{body: `{"spec":{"audiences":["vault"],"expirationSeconds":600}}`}, 201, `"expirationSeconds":600`},
		"for a pod":                {call{body: bound("")}, 201, `"token":"ey`},
		"with attestations":        {call{body: `{"spec":{"attestations":{"admissionReviewAPIGroups":["*"]}}}`}, 422, "attestations may only be specified with a webhook bound object reference"},
		"too short":                {call{body: `{"spec":{"expirationSeconds":599}}`}, 422, "may not specify a duration less than 10 minutes"},
		"too long":                 {call{body: `{"spec":{"expirationSeconds":5000000000}}`}, 422, "may not specify a duration larger than 2^32 seconds"},
		"another account's name":   {call{body: `{"metadata":{"name":"x"}}`}, 422, "must match the service account name if specified"},
		"another account's uid":    {call{body: `{"metadata":{"uid":"x"}}`}, 409, "the UID in the token request (x) does not match the UID of the service account"},
		"no such account":          {call{path: strings.Replace(path, "accounts/default", "accounts/none", 1), body: `{}`}, 404, `serviceaccounts \"none\" not found`},
		"for a pod of former days": {call{body: bound(`,"uid":"x"`)}, 409, "The object might have been deleted and then recreated"},
		"for no such secret":       {call{body: `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":"s"}}}`}, 404, "not found"},
		"for a deployment":         {call{body: `{"spec":{"boundObjectRef":{"apiVersion":"apps/v1","kind":"Deployment","name":"s"}}}`}, 400, "cannot bind token to object of type apps/v1, Kind=Deployment"},
		"by the pod's node":        {call{body: bound(uid), as: nodeA}, 201, `"token":"ey`},
		"by the node without uid":  {call{body: bound(""), as: nodeA}, 403, "without a uid"},
		"by the node, unbound":     {call{body: `{}`, as: nodeA}, 403, "node requested token not bound to a pod"},
		"by another node":          {call{body: bound(uid), as: nodeB}, 403, "no relationship found between node 'b' and this object"},
		"by somebody":              {call{body: `{}`, as: &user.DefaultInfo{Name: "eve"}}, 403, `cannot create resource \"serviceaccounts/token\"`},
	} {
		t.Run(name, func(t *testing.T) {
			c.method = http.MethodPost
			if c.path == "" {
				c.path = path
			}
			a := c.do(t, server)
			if a.code != c.code || !strings.Contains(strings.ReplaceAll(a.body, ": ", ":"), strings.ReplaceAll(c.text, ": ", ":")) {
				t.Errorf("%d %s", a.code, a.body)
			}
		})
	}
}

func TestReviews(t *testing.T) {
	server, client := newGuardedServer(t)
	good := token(t, client, "default", nil)
	eve := &user.DefaultInfo{Name: "eve", Groups: []string{"system:authenticated"}, Extra: map[string][]string{"k": {"v"}}}
	const access, identity = "/apis/authorization.k8s.io/v1/", "/apis/authentication.k8s.io/v1/"
	for name, c := range map[string]struct {
		path, body string
		as         user.Info
		code       int
		want       map[string]any // of the status
	}{
		"may he":             {access + "subjectaccessreviews", `{"spec":{"user":"a","groups":["system:masters"],"resourceAttributes":{"verb":"get","resource":"pods"}}}`, admin, 201, map[string]any{"allowed": true}},
		"may he not":         {access + "subjectaccessreviews", `{"spec":{"user":"a","nonResourceAttributes":{"verb":"get","path":"/metrics"}}}`, admin, 201, map[string]any{"allowed": false}},
		"may he, by a group": {access + "subjectaccessreviews", `{"spec":{"groups":["system:authenticated"],"nonResourceAttributes":{"verb":"get","path":"/api"}}}`, admin, 201, map[string]any{"allowed": true, "reason": `RBAC: allowed by ClusterRoleBinding "system:discovery" of ClusterRole "system:discovery" to Group "system:authenticated"`}},
		"may who":            {access + "subjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods"}}}`, admin, 422, nil},
		"may he what":        {access + "subjectaccessreviews", `{"spec":{"user":"a"}}`, admin, 422, nil},
		"eve asks of others": {access + "subjectaccessreviews", `{"spec":{"user":"a","nonResourceAttributes":{"verb":"get","path":"/api"}}}`, eve, 403, nil},
		"may eve":            {access + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"get","resource":"pods","namespace":"default"}}}`, eve, 201, map[string]any{"allowed": false}},
		"in a namespace":     {access + "namespaces/default/localsubjectaccessreviews", `{"spec":{"user":"a","resourceAttributes":{"namespace":"default","verb":"get","resource":"pods"}}}`, admin, 201, map[string]any{"allowed": false}},
		"in another":         {access + "namespaces/default/localsubjectaccessreviews", `{"spec":{"user":"a","resourceAttributes":{"namespace":"x","verb":"get","resource":"pods"}}}`, admin, 422, nil},
		"a selector":         {access + "selfsubjectaccessreviews", `{"spec":{"resourceAttributes":{"verb":"list","resource":"pods","labelSelector":{"requirements":[{"key":"k","operator":"Near"}]}}}}`, eve, 201, map[string]any{"evaluationError": "spec.resourceAttributes.labelSelector ignored due to parse error"}},
		"who is eve":         {identity + "selfsubjectreviews", `{}`, eve, 201, map[string]any{"userInfo": map[string]any{"username": "eve", "groups": []any{"system:authenticated"}, "extra": map[string]any{"k": []any{"v"}}}}},
		"whose token":        {identity + "tokenreviews", `{"spec":{"token":"` + good + `"}}`, admin, 201, map[string]any{"authenticated": true, "audiences": []any{tokens.DefaultIssuer}}},
		"for whom":           {identity + "tokenreviews", `{"spec":{"token":"` + good + `","audiences":["vault"]}}`, admin, 201, map[string]any{"error": `token audiences ["https://kubernetes.default.svc.cluster.local"] is invalid for the target audiences ["vault"]`}},
		"no token at all":    {identity + "tokenreviews", `{"spec":{}}`, admin, 400, nil},
		"nobody's token":     {identity + "tokenreviews", `{"spec":{"token":"x"}}`, admin, 201, map[string]any{}},
		"eve's rules":        {access + "selfsubjectrulesreviews", `{"spec":{"namespace":"default"}}`, eve, 201, map[string]any{"incomplete": false}},
		"rules of nowhere":   {access + "selfsubjectrulesreviews", `{"spec":{}}`, eve, 400, nil},
	} {
		t.Run(name, func(t *testing.T) {
			a := call{method: http.MethodPost, path: c.path, body: c.body, as: c.as}.do(t, server)
			if a.code != c.code {
				t.Fatalf("%d %s", a.code, a.body)
			}
			var got struct{ Status map[string]any }
			if err := json.Unmarshal([]byte(a.body), &got); c.code == 201 && err != nil {
				t.Fatal(err)
			}
			for field, want := range c.want {
				if w, g := inJSON(want), inJSON(got.Status[field]); w != g {
					t.Errorf("%s: %s, want %s", field, g, w)
				}
			}
			if c.want != nil && c.want["authenticated"] == nil && got.Status["authenticated"] == true {
				t.Error("authenticated")
			}
		})
	}
	table := call{
		method: http.MethodPost,
		path:   access + "selfsubjectaccessreviews",
		body:   `{"spec":{"nonResourceAttributes":{"verb":"get","path":"/"}}}`,
		accept: "application/json;as=Table;v=v1;g=meta.k8s.io",
	}
	if a := table.do(t, server); a.code != http.StatusNotAcceptable {
		t.Errorf("a table of an answer: %d", a.code)
	}
	for _, verb := range []string{http.MethodGet, http.MethodDelete} {
		if a := (call{method: verb, path: identity + "tokenreviews"}).do(t, server); a.code != http.StatusMethodNotAllowed {
			t.Errorf("%s: %d", verb, a.code)
		}
	}
}

func inJSON(v any) string {
	text, _ := json.Marshal(v)
	return string(text)
}

// TestRulesReviewListsWhatOneMay as `kubectl auth can-i --list` shows it.
func TestRulesReviewListsWhatOneMay(t *testing.T) {
	server, client := newGuardedServer(t)
	robot := as(t, server, token(t, client, "default", nil))
	got, err := robot.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	text := inJSON(got.Status)
	for _, want := range []string{"selfsubjectreviews", "/apis/*", "/openid/v1/jwks"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in %s", want, text)
		}
	}
}

// TestImpersonation needs the right to act as each part of the other.
func TestImpersonation(t *testing.T) {
	server, client := newGuardedServer(t)
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "actor"}, Rules: []rbacv1.PolicyRule{
		{Verbs: []string{"impersonate"}, APIGroups: []string{""}, Resources: []string{"users"}, ResourceNames: []string{"jane"}},
		{Verbs: []string{"impersonate"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"userextras/scopes"}, ResourceNames: []string{"view"}},
	}}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "actor"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "actor"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "default", Namespace: "default"}},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	bearer := token(t, client, "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(time.Hour.Seconds()))}})
	for name, c := range map[string]struct {
		as   rest.ImpersonationConfig
		fine bool
	}{
		"himself":          {rest.ImpersonationConfig{}, true},
		"jane":             {rest.ImpersonationConfig{UserName: "jane"}, true},
		"jane, viewing":    {rest.ImpersonationConfig{UserName: "jane", Extra: map[string][]string{"scopes": {"view"}}}, true},
		"jane, editing":    {rest.ImpersonationConfig{UserName: "jane", Extra: map[string][]string{"scopes": {"edit"}}}, false},
		"jane with a uid":  {rest.ImpersonationConfig{UserName: "jane", UID: "1"}, false},
		"jane of a group":  {rest.ImpersonationConfig{UserName: "jane", Groups: []string{"system:masters"}}, false},
		"the next user":    {rest.ImpersonationConfig{UserName: "june"}, false},
		"a group, no user": {rest.ImpersonationConfig{Groups: []string{"g"}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			actor, err := kubernetes.NewForConfig(&rest.Config{
				Host: "https://in-process", QPS: -1, BearerToken: bearer, Impersonate: c.as, Transport: &transport{server: server},
				ContentConfig: rest.ContentConfig{ContentType: "application/json"},
			})
			if err != nil {
				if c.fine {
					t.Fatal(err)
				}
				return // the client refuses by itself
			}
			who, err := actor.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if (err == nil) != c.fine {
				t.Fatalf("%v, %v", who, err)
			}
			if c.fine && c.as.UserName != "" && who.Status.UserInfo.Username != c.as.UserName {
				t.Errorf("acts as %s", who.Status.UserInfo.Username)
			}
		})
	}
}

// TestNodesReadWhatTheirPodsUse through the whole chain.
func TestNodesReadWhatTheirPodsUse(t *testing.T) {
	server, client := newGuardedServer(t)
	for _, name := range []string{"used", "other"} {
		if _, err := client.CoreV1().Secrets("default").Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{
		NodeName: "a", Containers: []corev1.Container{{Name: "c", Image: "i"}},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "used"}}}},
	}}
	if _, err := client.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	nodeA := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	for path, code := range map[string]int{
		"/api/v1/namespaces/default/secrets/used":                             200,
		"/api/v1/namespaces/default/secrets?fieldSelector=metadata.name=used": 200,
		"/api/v1/namespaces/default/configmaps/kube-root-ca.crt":              404,
		"/api/v1/namespaces/default/secrets/other":                            403,
		"/api/v1/namespaces/default/secrets":                                  403,
		"/api/v1/secrets":                                                     403,
		"/api/v1/pods?fieldSelector=spec.nodeName=a":                          200,
		"/api/v1/pods?fieldSelector=spec.nodeName=b":                          200, // it sees little of them
		"/api/v1/pods": 200,
		"/apis":        200,
	} {
		if a := (call{path: path, as: nodeA}).do(t, server); a.code != code && (path != "/apis" || a.code != 404) {
			t.Errorf("%s: %d, want %d: %s", path, a.code, code, a.body)
		}
	}
}
