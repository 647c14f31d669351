package apiserver

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/apiserver/pkg/authentication/user"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/apiserver/admission"
	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/apiserver/auth"
	"github.com/setpoint-io/setpoint/apiserver/discovery"
	"github.com/setpoint-io/setpoint/apiserver/kinds"
	"github.com/setpoint-io/setpoint/apiserver/requestmetrics"
	"github.com/setpoint-io/setpoint/apiserver/storage"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

type noKubelets struct{}

func (noKubelets) Agent(*corev1.Node) (*url.URL, http.RoundTripper, error) {
	return nil, nil, errors.New("no agents in this test")
}

var admin = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup}}

// newServer returns a server over an empty store with the namespace "default" and
// its default account, without which no pod is admitted. At the end of the test no
// shared object may have been changed.
func newServer(t testing.TB) (*Server, kubernetes.Interface) {
	t.Helper()
	return newServerWith(t, raftstoretest.NewLocal(state.Options{}))
}

// newBareServer is newServer without the account: for tests that count revisions, of
// which the namespace is the first.
func newBareServer(t testing.TB) (*Server, kubernetes.Interface) {
	t.Helper()
	return startBareServer(t, serverConfig(t, raftstoretest.NewLocal(state.Options{})))
}

func newServerWith(t testing.TB, log storage.Log) (*Server, kubernetes.Interface) {
	t.Helper()
	return startServer(t, serverConfig(t, log))
}

func serverConfig(t testing.TB, log storage.Log) Config {
	t.Helper()
	scheme := kinds.NewScheme()
	store := storage.New(log, scheme, kinds.All())
	if _, isTest := t.(*testing.T); isTest {
		store.VerifyShared()
		t.Cleanup(func() {
			if err := store.CheckShared(); err != nil {
				t.Error(err)
			}
		})
	}
	converter, err := discovery.TypeConverter()
	if err != nil {
		t.Fatal(err)
	}
	authorizer := auth.NewAuthorizer(auth.Config{})
	admit, err := admission.New(admission.Config{Store: store, Authorizer: authorizer})
	if err != nil {
		t.Fatal(err)
	}
	return Config{
		Kinds: kinds.All(), Scheme: scheme,
		Storage:       store,
		Kubelets:      noKubelets{},
		Admission:     admit,
		Quota:         quota.New(store, quota.Limited{}),
		Authenticator: auth.NewAuthenticator(nil, nil),
		Authorizer:    authorizer,
		TypeConverter: converter,
		Discovery:     http.NotFoundHandler(),
		Requests:      requestmetrics.New(),
		Logger:        slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func startServer(t testing.TB, config Config) (*Server, kubernetes.Interface) {
	t.Helper()
	server, client := startBareServer(t, config)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().ServiceAccounts("default").Create(t.Context(), account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func startBareServer(t testing.TB, config Config) (*Server, kubernetes.Interface) {
	t.Helper()
	server, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	client := clientFor(t, server)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	return server, client
}

func configFor(server *Server, u user.Info) *rest.Config {
	return &rest.Config{
		Host: "https://in-process", QPS: -1,
		Transport:     server.Transport(Caller{User: u}),
		ContentConfig: rest.ContentConfig{ContentType: "application/json"},
	}
}

func clientFor(t testing.TB, server *Server) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(configFor(server, admin))
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func configMap(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
}

func TestConfigMapLifecycle(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	created, err := cms.Create(t.Context(), configMap("a", map[string]string{"k": "1"}), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if created.UID == "" || created.ResourceVersion == "" || created.CreationTimestamp.IsZero() || created.Namespace != "default" {
		t.Errorf("created = %+v", created.ObjectMeta)
	}
	if len(created.ManagedFields) != 1 {
		t.Errorf("managedFields = %v", created.ManagedFields)
	}
	if _, err := cms.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{}); !apierrors.IsAlreadyExists(err) {
		t.Errorf("second create: %v", err)
	}
	created.Data["k"] = "2"
	updated, err := cms.Update(t.Context(), created, metav1.UpdateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if same, err := cms.Update(t.Context(), updated, metav1.UpdateOptions{}); err != nil || same.ResourceVersion != updated.ResourceVersion {
		t.Errorf("no-op update: %v, resourceVersion %s to %s", err, updated.ResourceVersion, same.ResourceVersion)
	}
	created.Data["k"] = "3"
	if _, err := cms.Update(t.Context(), created, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("stale update: %v", err)
	}
	patched, err := cms.Patch(t.Context(), "a", types.MergePatchType, []byte(`{"data":{"l":"x"}}`), metav1.PatchOptions{})
	if err != nil || patched.Data["k"] != "2" || patched.Data["l"] != "x" {
		t.Errorf("patched = %v, %v", patched.Data, err)
	}
	if err := cms.Delete(t.Context(), "a", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := cms.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after delete: %v", err)
	}
}

func TestWritesNeedANamespace(t *testing.T) {
	_, client := newServer(t)
	_, err := client.CoreV1().ConfigMaps("nowhere").Create(t.Context(), configMap("a", nil), metav1.CreateOptions{})
	if !apierrors.IsNotFound(err) || !strings.Contains(err.Error(), `namespaces "nowhere" not found`) {
		t.Errorf("err = %v", err)
	}
}

func TestGenerateName(t *testing.T) {
	_, client := newServer(t)
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "web-"}}
	created, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), cm, metav1.CreateOptions{})
	if err != nil || !strings.HasPrefix(created.Name, "web-") || len(created.Name) != len("web-")+5 {
		t.Errorf("name = %q, %v", created.Name, err)
	}
}

func TestDryRunStoresNothing(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	created, err := cms.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil || created.UID == "" || created.ResourceVersion != "" {
		t.Errorf("created = %+v, %v", created, err)
	}
	if _, err := cms.Get(t.Context(), "a", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("get after dry run: %v", err)
	}
}

func TestListPages(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		if _, err := cms.Create(t.Context(), configMap(name, nil), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	first, err := cms.List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || first.Continue == "" || *first.RemainingItemCount != 3 {
		t.Fatalf("first page = %d items, %+v, %v", len(first.Items), first.ListMeta, err)
	}
	if err := cms.Delete(t.Context(), "d", metav1.DeleteOptions{}); err != nil { // must not be missed by the next page
		t.Fatal(err)
	}
	second, err := cms.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if err != nil || names(second.Items) != "c d" || second.ResourceVersion != first.ResourceVersion || *second.RemainingItemCount != 1 {
		t.Fatalf("second page = %q, %+v, %v", names(second.Items), second.ListMeta, err)
	}
	last, err := cms.List(t.Context(), metav1.ListOptions{Limit: 2, Continue: second.Continue})
	if err != nil || names(last.Items) != "e" || last.Continue != "" {
		t.Fatalf("last page = %q, %+v, %v", names(last.Items), last.ListMeta, err)
	}
}

func names(items []corev1.ConfigMap) string {
	var all []string
	for _, item := range items {
		all = append(all, item.Name)
	}
	return strings.Join(all, " ")
}

func TestWatchSelectors(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	list, err := cms.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	w, err := cms.Watch(t.Context(), metav1.ListOptions{ResourceVersion: list.ResourceVersion, LabelSelector: "app=web"})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	cm, err := cms.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, labels := range []map[string]string{{"app": "web"}, {"app": "web", "v": "2"}, {}} {
		cm.Labels = labels
		if cm, err = cms.Update(t.Context(), cm, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []watch.EventType{watch.Added, watch.Modified, watch.Deleted} {
		if e := <-w.ResultChan(); e.Type != want {
			t.Fatalf("event = %v %+v, want %v", e.Type, e.Object, want)
		}
	}
}

func TestStreamingList(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	if _, err := cms.Create(t.Context(), configMap("a", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w, err := cms.Watch(t.Context(), metav1.ListOptions{SendInitialEvents: new(true), AllowWatchBookmarks: true, ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if e := <-w.ResultChan(); e.Type != watch.Added {
		t.Fatalf("first = %v", e)
	}
	e := <-w.ResultChan()
	if e.Type != watch.Bookmark || e.Object.(*corev1.ConfigMap).Annotations[metav1.InitialEventsAnnotationKey] != "true" {
		t.Fatalf("second = %v %+v", e.Type, e.Object)
	}
}

func TestFutureVersionTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		start := time.Now()
		code, body := get(t, server, http.MethodGet, "/api/v1/namespaces/default/configmaps?resourceVersion=99999&resourceVersionMatch=NotOlderThan", "application/json", nil)
		if code != http.StatusGatewayTimeout || !strings.Contains(body, string(metav1.CauseTypeResourceVersionTooLarge)) {
			t.Errorf("%d %s", code, body)
		}
		if waited := time.Since(start); waited != 3*time.Second {
			t.Errorf("waited %v", waited)
		}
	})
}

func TestApplyConflict(t *testing.T) {
	_, client := newServer(t)
	cms := client.CoreV1().ConfigMaps("default")
	wanted := corev1apply.ConfigMap("a", "default").WithData(map[string]string{"k": "alice"})
	if _, err := cms.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "alice"}); err != nil {
		t.Fatal(err)
	}
	wanted.WithData(map[string]string{"k": "bob"})
	_, err := cms.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "bob"})
	if !apierrors.IsConflict(err) || !strings.Contains(err.Error(), `conflict with "alice"`) {
		t.Errorf("err = %v", err)
	}
	forced, err := cms.Apply(t.Context(), wanted, metav1.ApplyOptions{FieldManager: "bob", Force: true})
	if err != nil || forced.Data["k"] != "bob" {
		t.Errorf("forced = %v, %v", forced, err)
	}
}

// get sends one request as the administrator and returns status and body.
func get(t *testing.T, server *Server, method, path, accept string, body io.Reader) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, "https://in-process"+path, body)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", accept)
	r.Header.Set("Content-Type", "application/json")
	response, err := server.Transport(Caller{User: admin}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestTables(t *testing.T) {
	server, client := newServer(t)
	if _, err := client.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("a", map[string]string{"k": "v"}), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/api/v1/namespaces/default/configmaps", "/api/v1/namespaces/default/configmaps/a"} {
		code, body := get(t, server, http.MethodGet, path, "application/json;as=Table;v=v1;g=meta.k8s.io", nil)
		var table metav1.Table
		if err := json.Unmarshal([]byte(body), &table); err != nil || code != http.StatusOK {
			t.Fatalf("%d %v: %s", code, err, body)
		}
		if table.ColumnDefinitions[0].Name != "Name" || len(table.Rows) != 1 || table.Rows[0].Cells[0] != "a" {
			t.Errorf("%s: table = %s", path, body)
		}
	}
}

func TestFieldValidation(t *testing.T) {
	server, _ := newServer(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"dat":{}}`
	code, text := get(t, server, http.MethodPost, "/api/v1/namespaces/default/configmaps?fieldValidation=Strict", "application/json", strings.NewReader(body))
	if code != http.StatusBadRequest || !strings.Contains(text, `unknown field \"dat\"`) {
		t.Errorf("%d %s", code, text)
	}
}

func TestOversizedBody(t *testing.T) {
	server, _ := newServer(t)
	body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"` + strings.Repeat("x", 3<<20) + `"}}`
	code, text := get(t, server, http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", strings.NewReader(body))
	if code != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", code, text)
	}
}

func TestUnknownPaths(t *testing.T) {
	server, _ := newServer(t)
	for path, want := range map[string]int{
		"/api/v1/namespaces/default/gadgets":          http.StatusNotFound,
		"/api/v1/namespaces/default/configmaps/a/log": http.StatusNotFound,
	} {
		if code, text := get(t, server, http.MethodGet, path, "application/json", nil); code != want {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
}

func TestOriginsReachTheLog(t *testing.T) {
	local := raftstoretest.NewLocal(state.Options{})
	scheme := kinds.NewScheme()
	table := storage.New(local, scheme, kinds.All()).Table(corev1.SchemeGroupVersion.WithResource("namespaces"))
	ctx := storage.WithOrigin(t.Context(), storage.Origin{User: "carol", RequestID: "r1", Fence: 99})
	_, err := table.Write(ctx, "", "x", func(*storage.View) (*storage.Change, error) {
		return &storage.Change{Object: &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x", UID: "u"}}}, nil
	})
	if !apierrors.IsConflict(err) {
		t.Errorf("a stale fence: %v", err)
	}
}

func TestAnonymousIsRefused(t *testing.T) {
	server, _ := newServer(t)
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process/api/v1/namespaces", nil)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	response, err := (&transport{server: server}).RoundTrip(r.WithContext(ctx))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusForbidden {
		t.Errorf("status = %d", response.StatusCode)
	}
}
