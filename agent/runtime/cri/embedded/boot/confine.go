package boot

import (
	"fmt"
	"os"
)

// confine has the next execve of this thread, or of a process that it forks, take on an AppArmor profile or an SELinux label. It
// writes to the procfs of the host: one that a container can see may be something else. So it is called before the container is
// entered, in the last stage, since the next stage would begin with an execve.
//
// That execve also clears the signal of the parent's death: if the shim of a confined container is killed while no agent runs, the
// container ends when the agent is back.
func confine(process *Process) error {
	if process.AppArmor != "" {
		if err := setAttribute("apparmor/exec", "exec "+process.AppArmor); err != nil {
			return fmt.Errorf("AppArmor profile %q: %w", process.AppArmor, err)
		}
	}
	if process.SELinux == "" {
		return nil
	}
	// The keyring that is made until then is the container's too; execve forgets this.
	for _, name := range []string{"keycreate", "exec"} {
		if err := setAttribute(name, process.SELinux); err != nil {
			return fmt.Errorf("SELinux label %q: %w", process.SELinux, err)
		}
	}
	return nil
}

func setAttribute(name, value string) error {
	return os.WriteFile("/proc/thread-self/attr/"+name, []byte(value), 0)
}
