package runtimeconfig

import (
	"strings"
	"testing"
)

// TestValidate: what says that things are as they are is accepted, all else is refused by name.
func TestValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		key, value string
		wrong      string
	}{
		"stable":                        {"apps/v1", "true", ""},
		"core":                          {"v1", "", ""},
		"a review":                      {"authorization.k8s.io/v1", "true", ""},
		"both autoscalings":             {"autoscaling/v1", "true", ""},
		"definitions":                   {"apiextensions.k8s.io/v1", "true", ""},
		"a resource":                    {"apps/v1/deployments", "true", ""},
		"all stable":                    {"api/ga", "true", ""},
		"no beta":                       {"api/beta", "false", ""},
		"not served":                    {"resource.k8s.io/v1beta1", "false", ""},
		"all":                           {"api/all", "true", "api/all=true: setpoint serves stable versions only"},
		"a beta version":                {"resource.k8s.io/v1beta1", "true", "resource.k8s.io/v1beta1=true: setpoint serves stable versions only"},
		"an unknown version":            {"apps/v7", "true", "apps/v7=true: setpoint serves stable"},
		"nothing stable":                {"api/ga", "false", "api/ga=false: setpoint cannot turn off"},
		"no core":                       {"v1", "false", "v1=false: setpoint cannot turn off"},
		"no resource":                   {"apps/v1/deployments", "0", "setpoint cannot turn off"},
		"no such group":                 {"resource.k8s.oi/v1", "false", "resource.k8s.oi/v1: nothing has this name"},
		"a group without versions here": {"internal.apiserver.k8s.io/v1alpha1", "false", ""},
		"no such word":                  {"api/bogus", "false", "api/bogus: nothing has this name"},
		"no such core":                  {"v7", "false", "v7: nothing has this name"},
		"too long":                      {"apps/v1/deployments/scale", "false", "nothing has this name"},
		"no version":                    {"apps/", "false", "nothing has this name"},
		"odd":                           {"apps/v1", "maybe", "apps/v1=maybe is neither true nor false"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Validate(map[string]string{tc.key: tc.value})
			if (err != nil) != (tc.wrong != "") || err != nil && !strings.Contains(err.Error(), tc.wrong) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
