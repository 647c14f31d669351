package install

import (
	"context"
	"fmt"
	"strings"

	"github.com/setpoint-io/setpoint/internal/durable"
)

// put writes what a role needs on the machine.
func (i *installer) put(r role, env *environment) error {
	if err := i.files.writeBinary(); err != nil {
		return fmt.Errorf("%s: %w", binaryFile, err)
	}
	if err := env.save(i.files, r); err != nil {
		return err
	}
	if err := durable.MkdirAll(i.files.path(unitFolder), 0o755); err != nil {
		return err
	}
	return i.files.write(unitFolder+"/"+r.unit(), unitMode, strings.NewReader(r.unitText(env)))
}

// start has systemd run the role, or says what to run without it.
func (i *installer) start(ctx context.Context, r role) (started bool, err error) {
	if i.manager == nil {
		fmt.Fprintf(i.out, "systemd does not run this machine, so nothing was started. To run it:\n%s\n", r.command())
		return false, nil
	}
	return true, i.manager.start(ctx, r.unit())
}
