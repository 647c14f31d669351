package agent

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/setpoint-io/setpoint/agent/kubeletconfig"
	"github.com/setpoint-io/setpoint/agent/runtime/cri"
	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// walls is a runtime that tells which walls it has; nil: it does not answer.
type walls struct {
	cri.Runtime
	conditions []*runtimeapi.RuntimeCondition
}

func (w walls) Status(context.Context, bool) (*runtimeapi.StatusResponse, error) {
	if w.conditions == nil {
		return nil, errors.New("not there")
	}
	return &runtimeapi.StatusResponse{Status: &runtimeapi.RuntimeStatus{Conditions: w.conditions}}, nil
}

// TestWhatANodeNeedsToBeReady of its runtime are CRI's conditions, and no others.
func TestWhatANodeNeedsToBeReady(t *testing.T) {
	is := func(kind string, status bool) *runtimeapi.RuntimeCondition {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: status, Message: "why"}
	}
	runtime, network := is(runtimeapi.RuntimeReady, true), is(runtimeapi.NetworkReady, true)
	for name, test := range map[string]struct {
		told []*runtimeapi.RuntimeCondition
		says string // "": it is ready
	}{
		"no answer":            {nil, "not there"},
		"nothing":              {[]*runtimeapi.RuntimeCondition{}, "does not say RuntimeReady"},
		"only one":             {[]*runtimeapi.RuntimeCondition{runtime}, "does not say NetworkReady"},
		"both":                 {[]*runtimeapi.RuntimeCondition{network, runtime}, ""},
		"no runtime":           {[]*runtimeapi.RuntimeCondition{network, is(runtimeapi.RuntimeReady, false)}, "RuntimeReady is false:  why"},
		"no network":           {[]*runtimeapi.RuntimeCondition{runtime, is(runtimeapi.NetworkReady, false)}, "NetworkReady is false:  why"},
		"a wall is missing":    {[]*runtimeapi.RuntimeCondition{runtime, network, is(cri.UserNamespacesReady, false)}, ""},
		"containerd's warning": {[]*runtimeapi.RuntimeCondition{is("ContainerdHasNoDeprecationWarnings", false), runtime, network}, ""},
	} {
		err := runtimeReady(t.Context(), walls{conditions: test.told})
		if err == nil && test.says != "" || err != nil && (test.says == "" || !strings.Contains(err.Error(), test.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestMissingWallsAreTold(t *testing.T) {
	is := func(kind string, status bool) *runtimeapi.RuntimeCondition {
		return &runtimeapi.RuntimeCondition{Type: kind, Status: status, Message: "why " + kind}
	}
	ready := is(runtimeapi.RuntimeReady, false) // is told elsewhere
	for name, test := range map[string]struct {
		mode   userns.Mode
		told   []*runtimeapi.RuntimeCondition
		status corev1.ConditionStatus // "": there is no condition
		says   []string
	}{
		"does not answer":          {userns.Auto, nil, "", nil},
		"tells of none":            {userns.Auto, []*runtimeapi.RuntimeCondition{ready}, "", nil},
		"all":                      {userns.Auto, []*runtimeapi.RuntimeCondition{ready, is(cri.AppArmorReady, true), is(cri.UserNamespacesReady, true)}, "False", []string{"all"}},
		"no users":                 {userns.Auto, []*runtimeapi.RuntimeCondition{is(cri.AppArmorReady, true), is(cri.UserNamespacesReady, false)}, "True", []string{"host's users: why User"}},
		"no users, and not wanted": {userns.Asked, []*runtimeapi.RuntimeCondition{is(cri.AppArmorReady, true), is(cri.UserNamespacesReady, false)}, "False", nil},
		"no labels":                {userns.Auto, []*runtimeapi.RuntimeCondition{is(cri.SELinuxReady, false)}, "True", []string{"agent's SELinux label: why SELinux"}},
		"neither":                  {userns.All, []*runtimeapi.RuntimeCondition{is(cri.AppArmorReady, false), is(cri.UserNamespacesReady, false)}, "True", []string{"why AppArmor", "why User"}},
	} {
		a := &agent{Config: Config{Runtime: walls{conditions: test.told}, Settings: kubeletconfig.Settings{UserNamespaces: test.mode}}}
		var got corev1.NodeCondition
		for _, got = range a.isolationConditions(t.Context()) {
		}
		if got.Status != test.status {
			t.Errorf("%s: %v", name, got)
		}
		for _, text := range test.says {
			if !strings.Contains(got.Message, text) {
				t.Errorf("%s: %s", name, got.Message)
			}
		}
	}
}
