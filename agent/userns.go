package agent

import (
	"fmt"

	"github.com/setpoint-io/setpoint/agent/runtime/userns"
)

// openUsers learns which users of the host the pods with user namespaces have.
func (a *agent) openUsers() error {
	all, err := userns.HostRange()
	if err == nil {
		a.users, err = userns.Open(userns.Config{
			Dir: a.dirs().Pods(), Users: all, PerPod: a.Settings.UsersPerPod, Mode: a.Settings.UserNamespaces,
			Logger: a.Logger,
		})
	}
	if err != nil {
		return fmt.Errorf("agent: user namespaces: %w", err)
	}
	return nil
}
