package ui

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

// fromThePage is what a browser says of a request of the page's own script.
var fromThePage = []string{"Origin", "http://127.0.0.1:8700", "Content-Type", "application/json", "Sec-Fetch-Site", "same-origin"}

// TestOrders: those of the page reach the servers, and nothing else does.
func TestOrders(t *testing.T) {
	const kill = `{"order":"kill","part":"node","name":"sim-1"}`
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		want               int
		asked, sent        string
	}{
		"a lesson":              {"POST", "/lesson", kill, fromThePage, 200, "POST /setpoint.v1.ClusterService/Lesson", kill},
		"a loop":                {"POST", "/loop", `{"order":"pause","loop":"deployment"}`, fromThePage, 200, "POST /setpoint.v1.ClusterService/Pace", `{"order":"pause","loop":"deployment"}`},
		"as a server":           {"POST", "/loop", `{"order":"pause","here":true}`, fromThePage, 200, "POST /setpoint.v1.ClusterService/Pace", `{"order":"pause"}`},
		"by GET":                {"GET", "/lesson", "", fromThePage, 405, "", ""},
		"no JSON":               {"POST", "/lesson", "kill", fromThePage, 400, "", ""},
		"an unknown field":      {"POST", "/lesson", `{"order":"kill","all":true}`, fromThePage, 400, "", ""},
		"two orders":            {"POST", "/lesson", kill + kill, fromThePage, 400, "", ""},
		"an order and more":     {"POST", "/loop", `{"order":"pause","loop":"deployment"} and more`, fromThePage, 400, "", ""},
		"too long":              {"POST", "/lesson", strings.Repeat(" ", bodyBytesMax+1), fromThePage, 413, "", ""},
		"a form":                {"POST", "/lesson", kill, []string{"Origin", "http://127.0.0.1:8700", "Content-Type", "text/plain"}, 403, "", ""},
		"of nobody":             {"POST", "/lesson", kill, []string{"Content-Type", "application/json"}, 403, "", ""},
		"of another page":       {"POST", "/lesson", kill, []string{"Origin", "http://127.0.0.1:1", "Content-Type", "application/json"}, 403, "", ""},
		"there is no such path": {"POST", "/lessons", kill, fromThePage, 405, "", ""},
	} {
		server := newCluster(t)
		w := ask(doorTo(t, server.URL), c.method, "/SECRET"+c.path, c.body, c.headers...)
		if got := strings.Join(server.asked, ", "); w.Code != c.want || got != c.asked || server.body != c.sent {
			t.Errorf("%s: %d %s, want %d; the server was asked %q with %q, want %q with %q", name, w.Code, w.Body, c.want, got, server.body, c.asked, c.sent)
		}
		checkGuarded(t, name, w)
	}
}

// TestAnOrderWithoutAnAnswer: what must not be done twice goes to no second server, and what may, does. A refusal is the server's.
func TestAnOrderWithoutAnAnswer(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want int
	}{
		"the clock": {`{"order":"advance","by":1000000000}`, 0}, "a node": {`{"order":"kill","part":"node","name":"n"}`, 1},
	} {
		hangsUp, second := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })), newCluster(t)
		t.Cleanup(hangsUp.Close)
		w := ask(doorTo(t, hangsUp.URL, second.URL), "POST", "/SECRET/lesson", c.body, fromThePage...)
		if len(second.asked) != c.want || (w.Code == http.StatusOK) != (c.want == 1) {
			t.Errorf("%s: %d %s, and the second server was asked %q", name, w.Code, w.Body, second.asked)
		}
	}
	refuses := newCluster(t)
	refuses.code = http.StatusConflict
	second := newCluster(t)
	w := ask(doorTo(t, refuses.URL, second.URL), "POST", "/SECRET/lesson", `{"order":"kill","part":"node","name":"n"}`, fromThePage...)
	if w.Code != http.StatusConflict || len(second.asked) > 0 {
		t.Errorf("%d %s, and the second server was asked %q", w.Code, w.Body, second.asked)
	}
}

// TestAWhatIf has the servers in their order, ends with its request, and is one at a time.
func TestAWhatIf(t *testing.T) {
	first, second := newCluster(t), newCluster(t)
	s := newServers(func() ([]Server, error) {
		return []Server{{"first", &rest.Config{Host: first.URL}}, {"second", &rest.Config{Host: second.URL}}}, nil
	})
	if err := s.read(); err != nil {
		t.Fatal(err)
	}
	s.stay("second", false)
	var hosts []string
	var door http.Handler
	again := 0
	door = newDoor(secret, s, func(ctx context.Context, servers []*rest.Config, question []byte) (any, error) {
		for _, server := range servers {
			hosts = append(hosts, server.Host)
		}
		again = ask(door, "POST", "/SECRET/what-if", "{}", fromThePage...).Code
		if string(question) == "no" {
			return nil, errors.New("nobody answers")
		}
		if string(question) == "malformed" {
			return nil, &admin.Refusal{StatusCode: http.StatusBadRequest, Reason: "that is no question"}
		}
		return map[string]string{"what": string(question)}, ctx.Err()
	})
	w := ask(door, "POST", "/SECRET/what-if", `{"drain":"n"}`, fromThePage...)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `{\"drain\":\"n\"}`) || !slices.Equal(hosts, []string{second.URL, first.URL}) {
		t.Errorf("%d %s, of %q", w.Code, w.Body, hosts)
	}
	if again != http.StatusTooManyRequests {
		t.Errorf("a second one beside it: %d", again)
	}
	for question, want := range map[string]struct {
		code int
		said string
	}{"no": {http.StatusBadGateway, "nobody answers"}, "malformed": {http.StatusBadRequest, "no question"}} {
		if w := ask(door, "POST", "/SECRET/what-if", question, fromThePage...); w.Code != want.code || !strings.Contains(w.Body.String(), want.said) {
			t.Errorf("%s: %d %s", question, w.Code, w.Body)
		}
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	r := newRequest("POST", "/SECRET/what-if", "{}").WithContext(gone)
	for i := 0; i < len(fromThePage); i += 2 {
		r.Header.Set(fromThePage[i], fromThePage[i+1])
	}
	cut := httptest.NewRecorder()
	if door.ServeHTTP(cut, r); cut.Code == http.StatusOK {
		t.Error("a question goes on whose browser is gone")
	}
	if len(first.asked)+len(second.asked) > 0 {
		t.Errorf("the servers were asked %q %q", first.asked, second.asked)
	}
}
