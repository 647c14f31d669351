package apiserver

import (
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/apiserver/pkg/endpoints/request"

	"github.com/setpoint-io/setpoint/apiserver/flowcontrol"
	"github.com/setpoint-io/setpoint/internal/shares"
)

// TestWhatTakesLongWaitsForItsTurn: lists of many objects and updates of large ones, while the same tenant computes as much as it may.
// Small ones do not wait, and nobody else does.
func TestWhatTakesLongWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := busyServer(t)
		server.config.Fairness = flowcontrol.New(func(info *request.RequestInfo, _, _ int) (objects, bytes int) {
			if info.Resource == "configmaps" {
				return 1000, 0
			}
			return 1, 0
		})
		server.chain = server.newChain(http.HandlerFunc(server.route))
		const greedy, other = "192.0.2.1:5000", "192.0.2.2:5000"
		large := `{"metadata":{"name":"large"},"data":{"a":"` + strings.Repeat("x", 40<<10) + `"}}`
		for _, body := range []string{large, `{"metadata":{"name":"small"}}`} {
			if code := send(t, server, http.MethodPost, cmPath, body, other); code != http.StatusCreated {
				t.Fatal(code)
			}
		}
		stop := make(chan struct{})
		defer close(stop)
		for range max(1, runtime.GOMAXPROCS(0)/2) {
			go func() {
				long := server.config.Processor.Long(t.Context(), shares.Stranger("192.0.2.1"))
				long.Begin()
				<-stop
				long.End()
			}()
		}
		synctest.Wait()
		for _, c := range []struct {
			name, method, path, body, from string
			waits                          bool
		}{
			{"a list of many", http.MethodGet, cmPath, "", greedy, true},
			{"a deletion of many", http.MethodDelete, cmPath + "?labelSelector=a%3Db", "", greedy, true},
			{"a watch that begins with many", http.MethodGet, cmPath + "?watch=1&timeoutSeconds=1", "", greedy, true},
			{"a watch that sends what there is", http.MethodGet, cmPath + "?watch=1&timeoutSeconds=1&sendInitialEvents=true" +
				"&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", greedy, true},
			{"a patch of a large object", http.MethodPatch, cmPath + "/large", `{"data":{"b":"c"}}`, greedy, true},
			{"a patch of a small one", http.MethodPatch, cmPath + "/small", `{"data":{"b":"c"}}`, greedy, false},
			{"a list of few", http.MethodGet, "/api/v1/namespaces/default/secrets", "", greedy, false},
			{"another's list", http.MethodGet, cmPath, "", other, false},
			{"another's patch", http.MethodPatch, cmPath + "/large", `{"data":{"b":"d"}}`, other, false},
		} {
			answered := make(chan int, 1)
			go func() { answered <- send(t, server, c.method, c.path, c.body, c.from) }()
			synctest.Wait()
			select {
			case code := <-answered:
				if c.waits || code != http.StatusOK {
					t.Errorf("%s: %d", c.name, code)
				}
			default:
				if !c.waits {
					t.Errorf("%s waits", c.name)
				}
			}
		}
	})
}

// TestAListIsMeasuredOnce: its width is needed for its share of the processor, for its seats and for its turn.
func TestAListIsMeasuredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, measured := busyServer(t), 0
		server.config.Fairness = flowcontrol.New(func(*request.RequestInfo, int, int) (objects, bytes int) {
			measured++
			return 1000, 0
		})
		server.chain = server.newChain(http.HandlerFunc(server.route))
		for _, c := range []struct {
			name, method, path string
		}{
			{"a list", http.MethodGet, cmPath},
			{"a deletion of many", http.MethodDelete, cmPath + "?labelSelector=a%3Db"},
			{"a watch that begins with all", http.MethodGet, cmPath + "?watch=1&timeoutSeconds=1"},
		} {
			if measured = 0; send(t, server, c.method, c.path, "", "192.0.2.1:5000") != http.StatusOK || measured != 1 {
				t.Errorf("%s is measured %d times", c.name, measured)
			}
		}
	})
}

// send makes a request without a name, and returns the code of its answer.
func send(t *testing.T, server *Server, method, path, body, from string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.RemoteAddr = from
	r.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		r.Header.Set("Content-Type", "application/merge-patch+json")
	}
	w := &discard{header: http.Header{}}
	server.ServeHTTP(w, r)
	return w.code
}
