package systemd

import (
	"strings"
	"testing"
)

// TestUnits: the units say what the pages promise of them.
func TestUnits(t *testing.T) {
	for name, c := range map[string]struct {
		unit      string
		has, lack []string
	}{
		"server": {Server, []string{
			"Type=notify", "TimeoutStartSec=infinity", "WatchdogSec=2min", "RestartPreventExitStatus=65", "EnvironmentFile=/etc/setpoint/server.env", "ExecStart=/usr/local/bin/setpoint server", "Restart=always",
			"CapabilityBoundingSet=CAP_NET_BIND_SERVICE CAP_DAC_OVERRIDE CAP_CHOWN CAP_FOWNER", "MemoryMax=60%", "NoNewPrivileges=yes", "ReadWritePaths=" + ServerWrites, "WantedBy=multi-user.target",
		}, []string{"KillMode=process", "SuccessExitStatus"}},
		"agent": {Agent, []string{
			"Type=notify", "WatchdogSec=2min", "EnvironmentFile=/etc/setpoint/agent.env", "ExecStart=/usr/local/bin/setpoint agent", "Restart=always",
			"MemoryMax=50%", "KillMode=process", "Delegate=yes", "WantedBy=multi-user.target",
		}, []string{"SuccessExitStatus", "RestartPreventExitStatus", "NoNewPrivileges", "CapabilityBoundingSet", "ProtectSystem", "PrivateTmp"}},
	} {
		lines := strings.Split(c.unit, "\n")
		count := func(want string) (n int) {
			for _, line := range lines {
				if strings.HasPrefix(line, want) && (line == want || !strings.Contains(want, "=")) {
					n++
				}
			}
			return n
		}
		for _, line := range c.has {
			if count(line) != 1 {
				t.Errorf("%s has %q %d times", name, line, count(line))
			}
		}
		for _, key := range c.lack {
			if count(key) > 0 {
				t.Errorf("%s has %s, which ends pods, keeps them from starting, or leaves a process that crashed away", name, key)
			}
		}
	}
}
