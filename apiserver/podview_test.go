package apiserver

import (
	"bufio"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/authentication/user"
)

// TestNodesSeeLittleOfOthersPods: a node follows all pods for network policies. What is secret in a pod, it sees of its own only.
func TestNodesSeeLittleOfOthersPods(t *testing.T) {
	server, _ := newGuardedServer(t)
	const secret = "hunter2"
	body := func(name, node string) string {
		return `{"metadata":{"name":"` + name + `","labels":{"app":"web"},"annotations":{"note":"` + secret + `"}},"spec":{"nodeName":"` + node + `","containers":[
			{"name":"c","image":"i","env":[{"name":"PASSWORD","value":"` + secret + `"}],"args":["` + secret + `"],"ports":[{"name":"http","containerPort":8080},{"containerPort":9}]}]}}`
	}
	mustDo[corev1.Pod](t, server, call{method: http.MethodPost, path: podPath, body: body("mine", "a")})
	mustDo[corev1.Pod](t, server, call{method: http.MethodPost, path: podPath, body: body("theirs", "b")})
	nodeA := &user.DefaultInfo{Name: "system:node:a", Groups: []string{"system:nodes", "system:authenticated"}}
	const own, others = "?fieldSelector=spec.nodeName%3Da", "?fieldSelector=spec.nodeName%3Db"
	for path, sees := range map[string]bool{
		"/api/v1/pods": false, podPath: false, "/api/v1/pods" + others: false, podPath + "?fieldSelector=metadata.name%3Dtheirs": false,
		"/api/v1/pods?labelSelector=app%3Dweb": false, "/api/v1/pods?resourceVersion=0": false, "/api/v1/pods" + own: true,
	} {
		for _, accept := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
			a := call{path: path, as: nodeA, accept: accept}.do(t, server)
			if a.code != http.StatusOK || strings.Contains(a.body, secret) != sees {
				t.Errorf("list %s as %s: %d %s", path, accept, a.code, a.body)
			}
			if !strings.Contains(a.body, "web") || !strings.Contains(a.body, "http") {
				t.Errorf("list %s as %s lacks labels or names of ports: %s", path, accept, a.body)
			}
		}
		line := firstEvent(t, server, nodeA, path)
		if strings.Contains(line, secret) != sees || !strings.Contains(line, `"web"`) || !strings.Contains(line, `"http"`) {
			t.Errorf("watch %s: %s", path, line)
		}
	}
	if a := (call{path: podPath + "/theirs", as: nodeA}).do(t, server); a.code != http.StatusForbidden {
		t.Errorf("get: %d %s", a.code, a.body)
	}
}

// firstEvent is the first line of a watch.
func firstEvent(t *testing.T, server *Server, as user.Info, path string) string {
	t.Helper()
	separator := "?"
	if strings.Contains(path, "?") {
		separator = "&"
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://in-process"+path+separator+"watch=1", nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := server.Transport(Caller{User: as}).RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	scan := bufio.NewScanner(response.Body)
	scan.Scan()
	return scan.Text()
}
