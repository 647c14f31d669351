package agent

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/setpoint-io/setpoint/agent/net/network/ownaddress"
	"github.com/setpoint-io/setpoint/agent/net/router"
	"github.com/setpoint-io/setpoint/agent/net/router/table"
)

// TestPortsThatOthersHave are told once, and for as long as that is so.
func TestPortsThatOthersHave(t *testing.T) {
	a := &agent{Config: Config{Ingress: router.Ports{HTTP: 80, HTTPS: 443}, DNS: new(ownaddress.Holder)}}
	taken := errors.New("address already in use")
	for i, step := range []struct {
		port int
		err  error
		news bool
		want corev1.ConditionStatus
	}{
		{443, nil, false, corev1.ConditionFalse},
		{80, taken, true, corev1.ConditionTrue},
		{80, taken, false, corev1.ConditionTrue},
		{80, nil, true, corev1.ConditionFalse},
	} {
		if news := a.ingressPorts.note(string(rune(step.port)), ingressProblem(step.port, step.err)); news != step.news {
			t.Errorf("step %d: news %v", i, news)
		}
		all := a.portConditions()
		if len(all) != 2 || all[0].Type != table.NodeProblem || all[0].Status != step.want {
			t.Errorf("step %d: %+v", i, all)
		}
		if step.want == corev1.ConditionTrue && !strings.Contains(all[0].Message, "port 80 serves no Ingresses") {
			t.Errorf("step %d: %s", i, all[0].Message)
		}
	}
	const socket = "udp 10.96.0.10:9053"
	a.namePorts.note(socket, namesProblem(socket, taken))
	names := a.portConditions()[1]
	if names.Type != DNSProblem || names.Status != corev1.ConditionTrue || !strings.Contains(names.Message, "sport = :9053") {
		t.Errorf("names: %+v", names)
	}
	if all := (&agent{}).portConditions(); len(all) != 0 {
		t.Errorf("a node that serves neither: %+v", all)
	}
}
