package boot

import (
	"fmt"
	"os"
)

// confine has the next execve of this thread, or of a process that it forks, take on an AppArmor profile. It writes to the procfs
// of the host: one that a container can see may be something else. So it is called before the container is entered, in the last
// stage, since the next stage would begin with an execve.
//
// That execve also clears the signal of the parent's death: if the shim of a confined container is killed while no agent runs, the
// container ends when the agent is back.
func confine(profile string) error {
	if profile == "" {
		return nil
	}
	if err := os.WriteFile("/proc/thread-self/attr/apparmor/exec", []byte("exec "+profile), 0); err != nil {
		return fmt.Errorf("AppArmor profile %q: %w", profile, err)
	}
	return nil
}
