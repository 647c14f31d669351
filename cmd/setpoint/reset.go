package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/setpoint-io/setpoint/agent/reset"
)

func newReset() *cobra.Command {
	var dataDir, output string
	var yes bool
	cmd := &cobra.Command{
		Use: "reset", SuggestFor: []string{"clean", "cleanup", "delete", "destroy", "purge", "remove"},
		Short: "Remove what a cluster has left on this machine: pods, mounts, cgroups, network, data",
		Long: "Remove what a cluster has left on this machine: end the pods of a data directory at once, remove their mounts,\n" +
			"cgroups and interfaces, the bridge, the nftables tables and the routes, and delete the data directory with all that is\n" +
			"in it, image archives and logs too. It works as well after somebody has deleted that directory first, and doing it\n" +
			"again is harmless. It refuses while a server or an agent runs with the directory. The pods of other data directories\n" +
			"go on; while there are some, the network stays.\n\n" +
			"A server that others go on without: 'setpoint cluster remove' first. A node: 'setpoint kubectl delete node' after it.\n" +
			"A trust folder elsewhere stays, with the note that the cluster was founded: to begin anew on all servers, remove\n" +
			"pki/founded.json there too.",
		Example: "  sudo setpoint reset\n  setpoint reset --data-dir /tmp/cluster --yes",
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", defaultDataDir(), "the data directory of dev, server or agent")
	cmd.Flags().BoolVar(&yes, "yes", false, "do not ask, for scripts")
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if dataDir == "" {
			return usageError{errNoDataDir}
		}
		if err := checkOutput(output); err != nil {
			return err
		}
		plan, err := reset.Look(dataDir)
		if err != nil {
			return err
		}
		if !yes && !plan.Nothing() {
			if err := confirmReset(cmd, plan); err != nil {
				return err
			}
		}
		report, err := reset.Run(dataDir)
		if report == nil {
			return err
		}
		printed := printAs(cmd.OutOrStdout(), output, report, func(w io.Writer) error { return printReset(w, report) })
		return errors.Join(err, printed)
	}
	return withSources(cmd)
}

// confirmReset asks on standard error: standard output is the report's.
func confirmReset(cmd *cobra.Command, plan *reset.Plan) error {
	w := cmd.ErrOrStderr()
	if len(plan.Pods) > 0 {
		fmt.Fprintf(w, "This ends %d pods: %s\n", len(plan.Pods), strings.Join(plan.Pods, ", "))
	}
	if plan.Network {
		fmt.Fprintln(w, "This removes the pod network of this machine.")
	}
	if plan.Exists {
		fmt.Fprintf(
			w,
			"This deletes %s and all that is in it: the data of the cluster that this machine has, image archives, logs.\n",
			plan.DataDir,
		)
	}
	fmt.Fprint(w, "Type yes to go on: ")
	line, err := bufio.NewReader(cmd.InOrStdin()).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if strings.TrimSpace(line) != "yes" {
		return errNotConfirmed
	}
	return nil
}

func printReset(w io.Writer, report *reset.Report) error {
	if len(report.Removed) == 0 {
		fmt.Fprintf(w, "there is nothing of %s to take away\n", report.DataDir)
	}
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, thing := range report.Removed {
		fmt.Fprintf(t, "removed\t%s\t%s\n", thing.Kind, thing.Name)
	}
	for _, thing := range report.Kept {
		fmt.Fprintf(t, "kept\t%s\t%s: %s\n", thing.Kind, thing.Name, thing.Why)
	}
	err := t.Flush()
	if os.Geteuid() != 0 {
		fmt.Fprintln(w, "containers of this machine, if there are any, are root's: 'sudo setpoint reset' ends them")
	}
	return err
}
