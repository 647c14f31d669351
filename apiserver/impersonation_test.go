package apiserver

import (
	"net/http"
	"net/http/httptest"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/kubernetes"
)

// grant lets a subject do what rules say, in the whole cluster.
func grant(t *testing.T, client kubernetes.Interface, name string, subject rbacv1.Subject, rules ...rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}
	if _, err := client.RbacV1().ClusterRoles().Create(t.Context(), role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: []rbacv1.Subject{subject},
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
	}
	if _, err := client.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestImpersonationInBounds: who may act as another only for some verbs on some
// resources may not use him for more, nor may he do more than that other.
func TestImpersonationInBounds(t *testing.T) {
	server, client := newGuardedServer(t)
	june := rbacv1.Subject{Kind: "User", APIGroup: rbacv1.GroupName, Name: "june"}
	grant(t, client, "june", june, rbacv1.PolicyRule{Verbs: []string{"list", "get"}, APIGroups: []string{""}, Resources: []string{"pods", "configmaps"}})
	account := rbacv1.Subject{Kind: "ServiceAccount", Namespace: "default", Name: "default"}
	grant(t, client, "actor", account,
		rbacv1.PolicyRule{Verbs: []string{"impersonate:user-info"}, APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"users"}, ResourceNames: []string{"june"}},
		rbacv1.PolicyRule{Verbs: []string{"impersonate-on:user-info:list"}, APIGroups: []string{""}, Resources: []string{"pods", "secrets"}})
	bearer := token(t, client, "default", nil)
	for name, c := range map[string]struct {
		path    string
		headers []string
		want    int
	}{
		"as june, in bounds":        {podPath, []string{"Impersonate-User", "june"}, http.StatusOK},
		"as june, another verb":     {podPath + "/a", []string{"Impersonate-User", "june"}, http.StatusForbidden},
		"as june, another resource": {cmPath, []string{"Impersonate-User", "june"}, http.StatusForbidden},
		"what june may not":         {"/api/v1/namespaces/default/secrets", []string{"Impersonate-User", "june"}, http.StatusForbidden},
		"as june of masters":        {podPath, []string{"Impersonate-User", "june", "Impersonate-Group", user.SystemPrivilegedGroup}, http.StatusForbidden},
		"as june with a uid":        {podPath, []string{"Impersonate-User", "june", "Impersonate-Uid", "1"}, http.StatusForbidden},
		"as june with an extra":     {podPath, []string{"Impersonate-User", "june", "Impersonate-Extra-Scopes", "all"}, http.StatusForbidden},
		"as jane":                   {podPath, []string{"Impersonate-User", "jane"}, http.StatusForbidden},
		"a group, no user":          {podPath, []string{"Impersonate-Group", "dev"}, http.StatusBadRequest},
		"a uid, no user":            {podPath, []string{"Impersonate-Uid", "1"}, http.StatusBadRequest},
		"an extra, no user":         {podPath, []string{"Impersonate-Extra-Scopes", "all"}, http.StatusBadRequest},
		"as himself":                {podPath, nil, http.StatusForbidden},
	} {
		t.Run(name, func(t *testing.T) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, c.path, nil)
			r.Header.Set("Authorization", "Bearer "+bearer)
			for i := 0; i < len(c.headers); i += 2 {
				r.Header.Set(c.headers[i], c.headers[i+1])
			}
			w := httptest.NewRecorder()
			server.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%d, want %d: %s", w.Code, c.want, w.Body)
			}
		})
	}
}

// TestAPodCallsTheAPI with the token that its node asked for, as long as it is there.
func TestAPodCallsTheAPI(t *testing.T) {
	server, client := newGuardedServer(t)
	pod, err := client.CoreV1().Pods("default").Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p"}, Spec: corev1.PodSpec{NodeName: "a", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	bearer := token(t, client, "default", &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: "p", UID: pod.UID},
	}})
	inPod := as(t, server, bearer)
	who, err := inPod.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || who.Status.UserInfo.Extra["authentication.kubernetes.io/pod-name"][0] != "p" {
		t.Fatalf("%+v, %v", who, err)
	}
	if err := client.CoreV1().Pods("default").Delete(t.Context(), "p", metav1.DeleteOptions{GracePeriodSeconds: new(int64)}); err != nil {
		t.Fatal(err)
	}
	_, err = inPod.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if !apierrors.IsUnauthorized(err) {
		t.Errorf("the pod has gone, its token has not: %v", err)
	}
}
