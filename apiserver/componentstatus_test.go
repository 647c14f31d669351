package apiserver

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

func TestComponentStatuses(t *testing.T) {
	var health error
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Health = func(context.Context) error { return health }
	server, _ := startServer(t, config)
	const path = "/api/v1/componentstatuses"
	if list := mustDo[corev1.ComponentStatusList](t, server, call{path: path}); len(list.Items) != 3 || list.Items[1].Conditions[0].Message != "ok" {
		t.Errorf("%+v", list)
	}
	if one := mustDo[corev1.ComponentStatusList](t, server, call{path: path + "?fieldSelector=metadata.name%3Dscheduler"}); len(one.Items) != 1 {
		t.Errorf("%+v", one)
	}
	health = errors.New("no majority answers")
	got := call{path: path + "/etcd-0"}.do(t, server)
	if !strings.Contains(got.body, `"error":"no majority answers"`) || !strings.Contains(got.header.Get("Warning"), "v1 ComponentStatus is deprecated in v1.19+") {
		t.Errorf("%d %s %v", got.code, got.body, got.header)
	}
	table := call{path: path, accept: "application/json;as=Table;v=v1;g=meta.k8s.io"}.do(t, server)
	if !strings.Contains(table.body, `"cells":["scheduler","Unhealthy","","no majority answers"]`) {
		t.Errorf("%d %s", table.code, table.body)
	}
	for _, past := range []string{path, path + "/etcd-0"} { // there is none: the present would be taken for it
		got := call{path: past + "?resourceVersion=1&resourceVersionMatch=Exact"}.do(t, server)
		if got.code != http.StatusBadRequest || !strings.Contains(got.body, "componentstatuses are computed when they are asked for: they have no past") {
			t.Errorf("%s: %d %s", past, got.code, got.body)
		}
	}
	for want, c := range map[int]call{404: {path: path + "/none"}, http.StatusMethodNotAllowed: {method: "DELETE", path: path + "/etcd-0"}} {
		if got := c.do(t, server); got.code != want {
			t.Errorf("%s %s: %d, want %d", c.method, c.path, got.code, want)
		}
	}
}
