package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/setpoint-io/setpoint/internal/trust"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

// nodePortService has so many node ports.
func nodePortService(name string, ports int) string {
	all := make([]string, ports)
	for i := range all {
		all[i] = fmt.Sprintf(`{"name":"p%d","port":%d}`, i, i+1)
	}
	return `{"metadata":{"name":"` + name + `"},"spec":{"type":"NodePort","ports":[` + strings.Join(all, ",") + `]}}`
}

// TestNamespacesShareNodePorts: one namespace has half of all node ports at most, however few writes ask for them; others find as many as
// it has, and a tenant's Gateways, whose Services a loop makes, count too. Administrators, and whoever writes where a quota says a number,
// are not bound by that.
func TestNamespacesShareNodePorts(t *testing.T) {
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Authorizer = authorizer.AuthorizerFunc(func(context.Context, authorizer.Attributes) (authorizer.Decision, string, error) {
		return authorizer.DecisionAllow, "", nil
	})
	server, _ := startServer(t, config)
	mustDo[corev1.Namespace](t, server, call{method: "POST", path: "/api/v1/namespaces", body: `{"metadata":{"name":"ten"}}`})
	tina := &user.DefaultInfo{Name: "tina"}
	mustDo[corev1.Service](t, server, call{method: "POST", path: svcPath, as: tina, body: `{"metadata":{"name":"inner"},"spec":{"ports":[{"port":80}]}}`})
	gateways := &user.DefaultInfo{Name: "system:serviceaccount:kube-system:gateway-controller", Groups: []string{trust.GroupServers}}
	const ten, quarter = "/api/v1/namespaces/ten/services", 2768 / 4
	widen := call{method: "PATCH", path: svcPath + "/inner", contentType: patchTypeOf["merge"], body: `{"spec":{"type":"NodePort"}}`, as: tina}
	create := func(path, name string, ports int, who user.Info) call {
		return call{method: "POST", path: path, body: nodePortService(name, ports), as: who}
	}
	const refused = `is forbidden: too many node ports: 1384 belong to namespace default, which is its share while 1384 of 2768 are taken`
	for _, c := range []struct {
		what    string
		call    call
		code    int
		message string
	}{
		{"a quarter", create(svcPath, "half", quarter, tina), 201, ""},
		{"too many at once", create(svcPath, "more", quarter+1, tina), 403, refused},
		{"a half", create(svcPath, "other", quarter, tina), 201, ""},
		{"one more", create(svcPath, "more", 1, tina), 403, refused},
		{"one more by an update", widen, 403, refused},
		{"a loop, for a Gateway", create(svcPath, "gateway-g", 1, gateways), 403, refused},
		{"no more", call{method: "PATCH", path: svcPath + "/half", contentType: patchTypeOf["merge"], body: `{"metadata":{"labels":{"a":"b"}}}`, as: tina}, 200, ""},
		{"another namespace", create(ten, "web", 1, tina), 201, ""},
		{"an administrator", create(svcPath, "admins", 1, admin), 201, ""},
		{"a quota", call{method: "POST", path: quotaPath, body: `{"metadata":{"name":"q"},"spec":{"hard":{"services.nodeports":"1386"}}}`}, 201, ""},
		{"what the quota allows", widen, 200, ""},
		{"what it does not", create(svcPath, "most", 1, tina), 403, "exceeded quota: q"},
	} {
		if c.what == "one more" {
			exchangePort(t, server, tina, "half")
		}
		if got := c.call.do(t, server); got.code != c.code || c.code == http.StatusForbidden && !strings.Contains(got.status.Message, c.message) {
			t.Errorf("%s: %d %s, want %d %s", c.what, got.code, got.status.Message, c.code, c.message)
		}
	}
}

// exchangePort gives a Service another node port in the place of one of its own, which takes none away from anybody.
func exchangePort(t *testing.T, server *Server, who user.Info, name string) {
	t.Helper()
	taken := map[int32]bool{}
	for _, service := range mustDo[corev1.ServiceList](t, server, call{path: svcPath}).Items {
		for _, port := range service.Spec.Ports {
			taken[port.NodePort] = true
		}
	}
	free := int32(30000)
	for taken[free] {
		free++
	}
	body := fmt.Sprintf(`[{"op":"replace","path":"/spec/ports/0/nodePort","value":%d}]`, free)
	mustDo[corev1.Service](t, server, call{method: "PATCH", path: svcPath + "/" + name, contentType: patchTypeOf["json"], body: body, as: who})
}
