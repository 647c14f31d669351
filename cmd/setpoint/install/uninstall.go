package install

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/agent/reset"
)

var errNotConfirmed = errors.New("not confirmed: data and keys stay")

// uninstall takes the units and the binary away, and with purge the rest, if confirm agrees.
func (i *installer) uninstall(ctx context.Context, purge bool, confirm func(what string) error) error {
	dataDir, server, err := i.installed()
	if err != nil {
		return err
	}
	if purge {
		what, err := i.purged(dataDir)
		if err == nil {
			err = confirm(what)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range []role{ofAgent, ofServer} {
		if err := i.removeUnit(ctx, r); err != nil {
			return err
		}
	}
	if purge {
		if err := i.purge(dataDir); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(i.out, "data in %s, pods, and keys in %s stay: 'setpoint uninstall --purge' removes them\n", dataDir, configFolder)
	}
	if server != "" {
		fmt.Fprintf(i.out, "if the cluster has other servers, run 'setpoint cluster remove %s' on one of them\n", server)
	}
	return i.remove(binaryFile)
}

// installed is where the data are, and what the server is called, "" if there is none.
func (i *installer) installed() (dataDir, server string, err error) {
	for _, r := range []role{ofAgent, ofServer} {
		env, err := readEnvironment(i.files.path(r.environmentFile()))
		if err != nil {
			return "", "", err
		}
		dataDir = cmp.Or(env.get(keyData), dataDir)
		if r == ofServer {
			server = env.get(keyName)
		}
	}
	return i.files.path(cmp.Or(dataDir, i.dataDir)), server, nil
}

// purged says what goes.
func (i *installer) purged(dataDir string) (string, error) {
	plan, err := reset.Look(dataDir)
	if err != nil && !errors.Is(err, reset.ErrRunning) { // what runs is stopped before
		return "", err
	}
	var what strings.Builder
	if plan != nil && len(plan.Pods) > 0 {
		fmt.Fprintf(&what, "This ends %d pods: %s\n", len(plan.Pods), strings.Join(plan.Pods, ", "))
	}
	fmt.Fprintf(&what, "This deletes %s, the data of the cluster that this machine has, and %s, its keys and settings.\n", dataDir, configFolder)
	return what.String(), nil
}

func (i *installer) removeUnit(ctx context.Context, r role) error {
	file := unitFolder + "/" + r.unit()
	if !exists(i.files.path(file)) {
		return nil
	}
	if i.manager != nil {
		if err := i.manager.stop(ctx, r.unit()); err != nil {
			return err
		}
	}
	if err := i.remove(file); err != nil || i.manager == nil {
		return err
	}
	return i.manager.reload(ctx)
}

func (i *installer) purge(dataDir string) error {
	if _, err := reset.Run(dataDir); err != nil {
		return err
	}
	fmt.Fprintf(i.out, "removed %s\n", dataDir)
	if err := os.RemoveAll(i.files.path(configFolder)); err != nil {
		return err
	}
	fmt.Fprintf(i.out, "removed %s\n", configFolder)
	return nil
}

func (i *installer) remove(file string) error {
	err := os.Remove(i.files.path(file))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		fmt.Fprintf(i.out, "removed %s\n", file)
	}
	return err
}

// confirmed asks, unless it was said before that the answer is yes.
func confirmed(cmd *cobra.Command, yes bool, what string) error {
	if yes {
		return nil
	}
	fmt.Fprint(cmd.ErrOrStderr(), what, "Type yes to go on: ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return errNotConfirmed
	}
	return nil
}
