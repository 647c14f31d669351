package choice

import (
	"slices"
	"strings"
	"testing"
)

// TestFlags: each name is honoured or refused in one line that says why.
func TestFlags(t *testing.T) {
	for name, tc := range map[string]struct {
		flags   Flags
		wrong   []string // one for each line
		leftOut []string
	}{
		"nothing":          {},
		"on already":       {flags: Flags{Enable: []string{"NodeRestriction", "PodSecurity", "ResourceQuota"}}},
		"nothing to do":    {flags: Flags{Enable: []string{"AlwaysAdmit"}, Disable: []string{"NamespaceExists", "PodGroupProtection"}}},
		"left out":         {flags: Flags{Disable: []string{"LimitRanger", "LimitRanger", "AlwaysPullImages"}}, leftOut: []string{"LimitRanger"}},
		"unknown, enable":  {flags: Flags{Enable: []string{"Nothing"}}, wrong: []string{"--enable-admission-plugins: Nothing: there is no such plugin; there are AlwaysAdmit, "}},
		"unknown, disable": {flags: Flags{Disable: []string{"Attended"}}, wrong: []string{"--disable-admission-plugins: Attended: there is no such plugin; "}},
		"both":             {flags: Flags{Enable: []string{"LimitRanger"}, Disable: []string{"LimitRanger"}}, wrong: []string{"LimitRanger: cannot be enabled and disabled at once"}, leftOut: []string{"LimitRanger"}},
		"safety": {
			flags: Flags{Enable: []string{"AlwaysDeny"}, Disable: []string{"NodeRestriction", "ResourceQuota"}},
			wrong: []string{
				"--enable-admission-plugins: AlwaysDeny: cannot be enabled: it would refuse",
				"--disable-admission-plugins: NodeRestriction: cannot be disabled: a node could",
				"--disable-admission-plugins: ResourceQuota: cannot be disabled: quotas",
			},
			leftOut: []string{"NodeRestriction", "ResourceQuota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			if err := tc.flags.Validate(); err != nil {
				lines = strings.Split(err.Error(), "\n")
			}
			if len(lines) != len(tc.wrong) {
				t.Fatalf("it says %q", lines)
			}
			for i, line := range lines {
				if !strings.HasPrefix(line, "--") || !strings.Contains(line, tc.wrong[i]) {
					t.Errorf("it says %q, want %q", line, tc.wrong[i])
				}
			}
			if got := tc.flags.LeftOut(); !slices.Equal(got, tc.leftOut) {
				t.Errorf("left out: %v", got)
			}
		})
	}
}

// TestEveryPluginIsDecided: what runs has no reason to be missing, and what may be left out none to be there.
func TestEveryPluginIsDecided(t *testing.T) {
	for _, p := range All() {
		if p.Fixed != "" && p.Default != On || p.Missing != "" && p.Default != Off {
			t.Errorf("%+v", p)
		}
	}
}
