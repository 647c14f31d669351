package flowcontrol

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
)

// widened is a world with so many seats in place of two.
func widened(t *testing.T, seats int, queueLength int32) *world {
	w := newWorld(t, queuing(queueLength))
	w.f.plan.Load().levels["narrow"].seats = seats
	return w
}

// accountsAsk has each of many service accounts of a namespace ask once, and says how many execute and are refused.
func accountsAsk(w *world, namespace string, count int) (executing, refused int) {
	for n := range count {
		if a := w.ask(fmt.Sprintf("system:serviceaccount:%s:%d", namespace, n), "get"); a.done && a.w.Code == http.StatusTooManyRequests {
			refused++
		}
	}
	return strings.Count(w.order(), ":"+namespace+":"), refused
}

// TestManyAccountsOfANamespaceAreOneTenant: however many there are, and however long they take, others execute at once.
func TestManyAccountsOfANamespaceAreOneTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := widened(t, 16, 20)
		if executing, refused := accountsAsk(w, "ten", 40); executing != 14 || refused != 0 {
			t.Errorf("%d execute, %d are refused", executing, refused)
		}
		w.ask("system:serviceaccount:shop:web", "get")
		w.ask("jane", "get")
		if got := w.order(); !strings.HasSuffix(got, "system:serviceaccount:shop:web jane") {
			t.Errorf("executing: %s", got)
		}
		w.ask("system:serviceaccount:shop:other", "get")
		w.endFirst()
		if got := w.order(); !strings.HasSuffix(got, "system:serviceaccount:shop:other") {
			t.Errorf("the tenant with fewer seats is not next: %s", got)
		}
		w.endAll()
		if l := w.f.plan.Load().levels["narrow"]; len(l.flows)+len(l.tenants)+l.taken+l.waiting != 0 {
			t.Errorf("left: %d flows, %d tenants, %d seats, %d waiting", len(l.flows), len(l.tenants), l.taken, l.waiting)
		}
	})
}

// TestManyAccountsDoNotFillTheQueue: others find room to wait, and accounts of one namespace take turns.
func TestManyAccountsDoNotFillTheQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := widened(t, 2, 20) // 80 may wait, 20 of one flow
		if executing, refused := accountsAsk(w, "ten", 100); executing != 2 || refused != 28 {
			t.Errorf("%d execute, %d are refused", executing, refused)
		}
		jane := w.ask("jane", "get")
		if jane.done {
			t.Errorf("jane has no room: %d", jane.w.Code)
		}
		w.endFirst()
		if got := w.order(); !strings.HasSuffix(got, " jane") {
			t.Errorf("executing: %s", got)
		}
		w.endAll()
	})
}

func TestTenantOf(t *testing.T) {
	for flow, want := range map[string]string{
		"jane": "jane", "": "", "system:serviceaccount:ten:a": "system:serviceaccount:ten", "system:serviceaccount:odd": "system:serviceaccount",
		"system:node:a": "system:node:a", "kube-system": "kube-system",
	} {
		if got := (flowKey{"s", flow}).tenant(); got != (flowKey{"s", want}) {
			t.Errorf("%s is of %v", flow, got)
		}
	}
}
