package auditlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/prometheus/client_golang/prometheus/testutil"
	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	auditapi "k8s.io/apiserver/pkg/apis/audit"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
)

// disk is where a log goes in tests: it can stall and fail.
type disk struct {
	bytes.Buffer
	stalled chan struct{} // nil: not stalled
	err     error
	writes  []int
	closed  bool
}

func (d *disk) Write(b []byte) (int, error) {
	if d.stalled != nil {
		<-d.stalled
	}
	if d.err != nil {
		return 0, d.err
	}
	d.writes = append(d.writes, len(b))
	return d.Buffer.Write(b)
}

func (d *disk) Close() error {
	d.closed = true
	return nil
}

func newTestLog(t *testing.T, d *disk) (l *Log, said *bytes.Buffer) {
	t.Helper()
	rules, err := loadPolicy("")
	if err != nil {
		t.Fatal(err)
	}
	said = &bytes.Buffer{}
	return newLog(rules, d, slog.New(slog.NewTextHandler(said, nil))), said
}

func event(id string, bodyBytes int) *auditapi.Event {
	body := &runtime.Unknown{Raw: []byte(`"` + strings.Repeat("y", bodyBytes) + `"`), ContentType: runtime.ContentTypeJSON}
	return &auditapi.Event{Level: auditapi.LevelRequest, AuditID: "x", RequestURI: "/" + id, RequestObject: body}
}

// run writes until stop is called, which returns when all that waited is written.
func run(t *testing.T, l *Log) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- l.Run(ctx) }()
	return func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

func TestEventsAreLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		l, said := newTestLog(t, d)
		stop := run(t, l)
		for range 3 {
			l.Sink().ProcessEvents(event("a", 0))
			synctest.Wait()
		}
		stop()
		lines := strings.Split(strings.TrimSuffix(d.String(), "\n"), "\n")
		if len(lines) != 3 || !d.closed || said.Len() > 0 {
			t.Fatalf("%d lines, closed %v: %s", len(lines), d.closed, said)
		}
		var read struct{ Kind, APIVersion, RequestURI string }
		if err := json.Unmarshal([]byte(lines[0]), &read); err != nil || read.Kind != "Event" || read.APIVersion != "audit.k8s.io/v1" || read.RequestURI != "/a" {
			t.Errorf("%+v, %v", read, err)
		}
	})
}

// TestTextsOfRequestsAreBounded: whatever a client sends as a name, a header or a query, an event has room for it; the request's own is not
// changed.
func TestTextsOfRequestsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{}
		l, _ := newTestLog(t, d)
		stop := run(t, l)
		long := strings.Repeat("x", 700_000)
		lists := strings.Split(strings.Repeat("x,", 100_000), ",")
		who := authnv1.UserInfo{Username: long, UID: long, Groups: lists, Extra: map[string]authnv1.ExtraValue{long: {long}, "k": lists}}
		e := &auditapi.Event{
			Level: auditapi.LevelMetadata, AuditID: types.UID(long), RequestURI: long, Verb: long, UserAgent: long, SourceIPs: lists, User: who, ImpersonatedUser: &who,
			ObjectRef:      &auditapi.ObjectReference{Resource: long, Namespace: long, Name: long, UID: types.UID(long), APIGroup: long, APIVersion: long, ResourceVersion: long, Subresource: long},
			ResponseStatus: &metav1.Status{Message: long, Reason: metav1.StatusReason(long), Details: &metav1.StatusDetails{Name: long}},
			Annotations:    map[string]string{long: long},
		}
		l.Sink().ProcessEvents(e)
		stop()
		if n := d.Len(); n == 0 || n > 32*textBytesMax {
			t.Errorf("an event of %d bytes", n)
		}
		if e.RequestURI != long || e.ObjectRef.Name != long || e.ResponseStatus.Details == nil || len(e.User.Groups) != len(lists) {
			t.Error("the request's own event was changed")
		}
	})
}

// TestAStalledDiskStopsNobody: requests go on, events beyond the limit are lost and counted.
func TestAStalledDiskStopsNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &disk{stalled: make(chan struct{})}
		l, said := newTestLog(t, d)
		stop := run(t, l)
		const eventBytes = 1 << 20
		l.Sink().ProcessEvents(event("first", eventBytes)) // which run takes, and hangs with
		synctest.Wait()
		const given = bufferLimit/eventBytes + 4
		for range given {
			if !l.Sink().ProcessEvents(event("more", eventBytes)) {
				t.Fatal("a request would be refused")
			}
		}
		lost := int(testutil.ToFloat64(l.Lost()))
		if lost == 0 || lost == given || !strings.Contains(said.String(), "audit events were lost") {
			t.Errorf("%d of %d lost: %s", lost, given, said)
		}
		if n := strings.Count(said.String(), "\n"); n != 1 {
			t.Errorf("told %d times", n)
		}
		close(d.stalled)
		stop()
		if n := strings.Count(d.String(), "\n"); n != 1+given-lost {
			t.Errorf("%d events written, want %d", n, 1+given-lost)
		}
		for _, n := range d.writes {
			if n > 2*eventBytes {
				t.Errorf("a write of %d bytes: no file could be begun in it", n)
			}
		}
	})
}

func TestAFailingDiskIsTold(t *testing.T) {
	d := &disk{err: errors.New("no space left")}
	l, said := newTestLog(t, d)
	stop := run(t, l)
	l.Sink().ProcessEvents(event("a", 0), event("b", 0))
	stop()
	if lost := testutil.ToFloat64(l.Lost()); lost != 2 || !strings.Contains(said.String(), "no space left") {
		t.Errorf("%v lost: %s", lost, said)
	}
}

func TestFilesAreForTheirOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logs", "audit.log")
	l, err := New(Config{Path: path, MaxSizeMiB: 1, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	stop := run(t, l)
	l.Sink().ProcessEvents(event("a", 0))
	stop()
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := New(Config{Path: path, PolicyFile: filepath.Join(t.TempDir(), "none")}); err == nil {
		t.Error("a policy that does not exist was taken")
	}
}

// TestOwnPolicyKeepsBodiesOut whatever is asked.
func TestOwnPolicyKeepsBodiesOut(t *testing.T) {
	l, _ := newTestLog(t, &disk{})
	person := &user.DefaultInfo{Name: "jane", Groups: []string{user.AllAuthenticated}}
	node := &user.DefaultInfo{Name: "system:node:a", Groups: []string{user.NodesGroup}}
	loop := &user.DefaultInfo{Name: user.KubeScheduler, Groups: []string{"system:setpoint:servers"}}
	for _, c := range []struct {
		who                         user.Info
		verb, group, resource, path string
		want                        auditapi.Level
	}{
		{person, "create", "", "secrets", "", auditapi.LevelMetadata},
		{person, "get", "", "configmaps", "", auditapi.LevelMetadata},
		{person, "create", "authentication.k8s.io", "tokenreviews", "", auditapi.LevelMetadata},
		{person, "delete", "apps", "deployments", "", auditapi.LevelMetadata},
		{person, "create", "", "events", "", auditapi.LevelNone},
		{person, "get", "", "", "/readyz/log", auditapi.LevelNone},
		{person, "get", "", "", "/metrics", auditapi.LevelMetadata},
		{node, "get", "", "secrets", "", auditapi.LevelMetadata},
		{node, "get", "", "pods", "", auditapi.LevelNone},
		{node, "create", "", "pods", "", auditapi.LevelMetadata},
		{loop, "list", "", "pods", "", auditapi.LevelNone},
		{loop, "update", "coordination.k8s.io", "leases", "", auditapi.LevelNone},
		{loop, "create", "", "pods/binding", "", auditapi.LevelMetadata},
	} {
		got := l.Policy().EvaluatePolicyRule(authorizer.AttributesRecord{
			User: c.who, Verb: c.verb, APIGroup: c.group, APIVersion: "v1", Resource: c.resource, ResourceRequest: c.resource != "", Path: c.path,
		})
		if got.Level != c.want {
			t.Errorf("%s: %s %s%s: %s, want %s", c.who.GetName(), c.verb, c.resource, c.path, got.Level, c.want)
		}
	}
}
