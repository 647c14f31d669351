package install

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

var errNotConfirmed = errors.New("not confirmed: data and keys stay")

// uninstall takes the units and their binary away, and with purge the rest, if confirm agrees.
func (i *installer) uninstall(ctx context.Context, purge bool, confirm func(what string) error) error {
	own, err := i.find()
	if err != nil {
		return err
	}
	if purge {
		what, err := i.purged(own)
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
		if err := i.purge(own); err != nil {
			return err
		}
	} else {
		fmt.Fprintf(i.out, "data in %s, pods, and keys and settings in %s stay: 'setpoint uninstall --purge' removes them\n",
			strings.Join(own.data, ", "), strings.Join(own.folders, ", "))
	}
	if own.server != "" {
		fmt.Fprintf(i.out, "if the cluster has other servers, run 'setpoint cluster remove %s' on one of them\n", own.server)
	}
	if own.units || purge && own.settings {
		return i.remove(binaryFile)
	}
	return nil
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
