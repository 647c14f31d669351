package apiserver

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/setpoint-io/setpoint/apiserver/admission/quota"
	"github.com/setpoint-io/setpoint/raftstore/raftstoretest"
	"github.com/setpoint-io/setpoint/raftstore/state"
)

const quotaPath = "/api/v1/namespaces/default/resourcequotas"

func makeQuota(t *testing.T, server *Server, hard string) {
	t.Helper()
	mustDo[corev1.ResourceQuota](t, server, call{method: "POST", path: quotaPath, body: `{"metadata":{"name":"q"},"spec":{"hard":{` + hard + `}}}`})
}

func usedOf(t *testing.T, server *Server, name corev1.ResourceName) string {
	t.Helper()
	q := mustDo[corev1.ResourceQuota](t, server, call{path: quotaPath + "/q"})
	amount, ok := q.Status.Used[name]
	if !ok {
		return "none"
	}
	return amount.String()
}

// TestQuotaIsNeverExceeded: many creators at once, through two servers over one log,
// get exactly what there is.
func TestQuotaIsNeverExceeded(t *testing.T) {
	log := raftstoretest.NewLocal(state.Options{})
	server, _ := newServerWith(t, log)
	other, err := New(serverConfig(t, log))
	if err != nil {
		t.Fatal(err)
	}
	makeQuota(t, server, `"configmaps":"20"`)
	var wg sync.WaitGroup
	var mu sync.Mutex
	codes := map[int]int{}
	for i := range 32 {
		wg.Go(func() {
			for j := range 2 {
				to := []*Server{server, other}[j]
				got := call{method: "POST", path: cmPath, body: cmBody(fmt.Sprintf("c%d-%d", i, j))}.do(t, to)
				mu.Lock()
				codes[got.code]++
				mu.Unlock()
				if got.code == 403 {
					refusal{
						code:       403,
						reason:     metav1.StatusReasonForbidden,
						messageHas: "is forbidden: exceeded quota: q, requested: configmaps=1, used: configmaps=20, limited: configmaps=20",
					}.check(
						t,
						"too many",
						got,
					)
				}
			}
		})
	}
	wg.Wait()
	if codes[201] != 20 || codes[403] != 44 {
		t.Errorf("answers = %v, want 20 of 201 and 44 of 403", codes)
	}
	if n := len(mustDo[corev1.ConfigMapList](t, server, call{path: cmPath}).Items); n != 20 || usedOf(t, server, "configmaps") != "20" {
		t.Errorf("%d objects, used %s", n, usedOf(t, server, "configmaps"))
	}
}

func TestQuotaFollowsObjects(t *testing.T) {
	server, _ := newServer(t)
	mustDo[corev1.Secret](t, server, call{method: "POST", path: "/api/v1/namespaces/default/secrets", body: `{"metadata":{"name":"before"}}`})
	makeQuota(t, server, `"secrets":"3","pods":"2","requests.cpu":"1","services.nodeports":"1","count/pods":"9"`)
	if used := usedOf(t, server, "secrets"); used != "none" {
		t.Errorf("used %s before anybody counted", used)
	}
	do := func(what string, code int, c call, want map[corev1.ResourceName]string) {
		t.Helper()
		if got := c.do(t, server); got.code != code {
			t.Fatalf("%s: %d %s", what, got.code, got.body)
		}
		for name, amount := range want {
			if used := usedOf(t, server, name); used != amount {
				t.Errorf("%s: used %s %s, want %s", what, name, used, amount)
			}
		}
	}
	secret := func(name string) call {
		return call{method: "POST", path: "/api/v1/namespaces/default/secrets", body: `{"metadata":{"name":"` + name + `"}}`}
	}
	sized := func(name, cpu string) call {
		return call{method: "POST", path: podPath, body: `{"metadata":{"name":"` + name + `"},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"` + cpu + `"}}}]}}`}
	}
	dry := secret("dry")
	dry.path += "?dryRun=All"
	do("the first counts those before it", 201, secret("a"), map[corev1.ResourceName]string{"secrets": "2", "pods": "0"})
	do("a dry run is judged", 201, dry, map[corev1.ResourceName]string{"secrets": "2"})
	do("what fails leaves no trace", 409, secret("a"), map[corev1.ResourceName]string{"secrets": "2"})
	do("the last", 201, secret("b"), map[corev1.ResourceName]string{"secrets": "3"})
	do("one too many", 403, secret("c"), map[corev1.ResourceName]string{"secrets": "3"})
	do("given back", 200, call{method: "DELETE", path: "/api/v1/namespaces/default/secrets/a"}, map[corev1.ResourceName]string{"secrets": "2"})
	do("a pod must say", 403, call{method: "POST", path: podPath, body: podBody("p")}, map[corev1.ResourceName]string{"pods": "0"})
	do("a pod", 201, sized("p", "600m"), map[corev1.ResourceName]string{"pods": "1", "requests.cpu": "600m", "count/pods": "1"})
	do("too large", 403, sized("r", "600m"), map[corev1.ResourceName]string{"pods": "1", "count/pods": "1"})
	do("it ends", 200, call{method: "PATCH", path: podPath + "/p/status", contentType: patchTypeOf["merge"], body: `{"status":{"phase":"Succeeded"}}`},
		map[corev1.ResourceName]string{"pods": "0", "requests.cpu": "0", "count/pods": "1"})
	do("it goes", 200, call{method: "DELETE", path: podPath + "/p"}, map[corev1.ResourceName]string{"count/pods": "0"})
	do("a service", 201, call{method: "POST", path: svcPath, body: `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`}, map[corev1.ResourceName]string{"services.nodeports": "0"})
	nodePort := call{method: "PATCH", path: svcPath + "/s", contentType: patchTypeOf["merge"], body: `{"spec":{"type":"NodePort","ports":[{"port":80,"name":"a"},{"port":81,"name":"b"}]}}`}
	do("an update that asks too much", 403, nodePort, map[corev1.ResourceName]string{"services.nodeports": "0"})
	nodePort.body = `{"spec":{"type":"NodePort"}}`
	do("an update", 200, nodePort, map[corev1.ResourceName]string{"services.nodeports": "1"})
}

// TestQuotaOfCustomResources: they are counted by the loop before anything is charged, and then with each write.
func TestQuotaOfCustomResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newCustomServer(t)
		define(t, server, crontabs)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- quota.New(server.config.Storage, quota.Limited{}).Keep(ctx) }()
		const counted = "count/crontabs.stable.example.com"
		makeQuota(t, server, `"`+counted+`":"1"`)
		synctest.Wait()
		for i, c := range []struct {
			call call
			code int
			used string
		}{
			{call{path: crontabPath}, 200, "0"},
			{call{method: "POST", path: crontabPath, body: crontab("a", `{"image":"x"}`)}, 201, "1"},
			{call{method: "POST", path: crontabPath, body: crontab("b", `{"image":"x"}`)}, 403, "1"},
			{call{method: "PATCH", path: quotaPath + "/q", contentType: patchTypeOf["merge"], body: `{"spec":{"hard":{"` + counted + `":"2"}}}`}, 200, "1"},
			{call{method: "DELETE", path: crontabPath + "/a"}, 200, "0"},
		} {
			got := c.call.do(t, server)
			synctest.Wait()
			if used := usedOf(t, server, counted); got.code != c.code || used != c.used {
				t.Errorf("step %d: %d %s, used %s, want %d and %s", i, got.code, got.body, used, c.code, c.used)
			}
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestQuotaIsCounted: what nobody charges is counted by the loop.
func TestQuotaIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, _ := newServer(t)
		mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("a")})
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- quota.New(server.config.Storage, quota.Limited{}).Keep(ctx) }()
		makeQuota(t, server, `"configmaps":"5"`)
		synctest.Wait()
		q := mustDo[corev1.ResourceQuota](t, server, call{path: quotaPath + "/q"})
		if q.Status.Hard.Name("configmaps", resource.DecimalSI).String() != "5" || usedOf(t, server, "configmaps") != "1" {
			t.Errorf("status = %+v", q.Status)
		}
		mustDo[corev1.ResourceQuota](
			t,
			server,
			call{method: "PATCH", path: quotaPath + "/q", contentType: patchTypeOf["merge"], body: `{"spec":{"hard":{"configmaps":"7","secrets":"1","count/things.example.com":"9"}}}`},
		)
		mustDo[corev1.ResourceQuota](t, server, call{method: "PATCH", path: quotaPath + "/q/status", contentType: patchTypeOf["merge"], body: `{"status":{"used":{"count/things.example.com":"3"}}}`})
		mustDo[corev1.ResourceQuota](t, server, call{method: "PATCH", path: quotaPath + "/q", contentType: patchTypeOf["merge"], body: `{"spec":{"hard":{"configmaps":"8"}}}`})
		synctest.Wait()
		if used := usedOf(t, server, "count/things.example.com"); used != "3" {
			t.Errorf("what custom resources were charged became %s", used)
		}
		if usedOf(t, server, "secrets") != "0" || usedOf(t, server, "configmaps") != "1" {
			t.Errorf("used %s and %s", usedOf(t, server, "secrets"), usedOf(t, server, "configmaps"))
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// TestWhatNeedsAQuota: the administrator's file keeps ConfigMaps from who has no quota for them.
func TestWhatNeedsAQuota(t *testing.T) {
	limited, err := quota.ParseLimited([]byte("apiVersion: apiserver.config.k8s.io/v1\nkind: ResourceQuotaConfiguration\n" +
		"limitedResources: [{resource: configmaps, matchContains: [count/]}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	config := serverConfig(t, raftstoretest.NewLocal(state.Options{}))
	config.Quota = quota.New(config.Storage, limited)
	server, _ := startServer(t, config)
	refusal{code: 403, reason: metav1.StatusReasonForbidden, messageHas: "insufficient quota to consume: count/configmaps"}.
		check(t, "without a quota", call{method: "POST", path: cmPath, body: cmBody("x")}.do(t, server))
	mustDo[corev1.ResourceQuota](t, server, call{
		method: "POST", path: quotaPath, body: `{"metadata":{"name":"q"},"spec":{"hard":{"count/configmaps":"1"}}}`,
	})
	mustDo[corev1.ConfigMap](t, server, call{method: "POST", path: cmPath, body: cmBody("x")})
}
