package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cmd/setpoint/clusterstatus"
	"github.com/setpoint-io/setpoint/server/admin"
)

// changeWait bounds an order: a new server may have much to catch up with.
const changeWait = 6 * time.Minute

const kubeconfigUsage = "kubeconfig with one context for each server (default $KUBECONFIG, then this machine's)"

func newClusterMembers() *cobra.Command {
	var kubeconfig, output string
	cmd := &cobra.Command{Use: "members", Short: "Show the servers of the control plane: role, reachable, how far behind"}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.Flags().StringVarP(&output, "output", "o", "table", outputUsage)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		members, err := fetchMembers(cmd.Context(), kubeconfig)
		if err != nil {
			return err
		}
		return printAs(cmd.OutOrStdout(), output, members, func(w io.Writer) error { return printMembers(w, members) })
	}
	return withSources(cmd)
}

// fetchMembers asks the server that knows best; if none tells its status, each for the reason.
func fetchMembers(ctx context.Context, kubeconfig string) (members []admin.Member, err error) {
	configs, err := contexts(kubeconfig)
	if err != nil {
		return nil, err
	}
	if best := clusterstatus.Best(ctx, configs); best != nil {
		ctx, cancel := context.WithTimeout(ctx, statusTimeout)
		defer cancel()
		return admin.FetchMembers(ctx, best)
	}
	err = askServers(ctx, kubeconfig, statusTimeout, func(ctx context.Context, config *rest.Config) (err error) {
		members, err = admin.FetchMembers(ctx, config)
		return err
	})
	return members, err
}

func printMembers(w io.Writer, members []admin.Member) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "NAME\tID\tADDRESS\tROLE\tREACHABLE\tAPPLIED\tLAG\tSINCE")
	for _, m := range members {
		applied, lag, since := "-", "-", "-"
		if m.Reachable {
			applied, lag = fmt.Sprint(m.Applied), fmt.Sprint(m.Lag)
		}
		if m.Since != nil {
			since = m.Since.Format(time.RFC3339)
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%t\t%s\t%s\t%s\n", m.Name, m.ID, m.Address, m.Role, m.Reachable, applied, lag, since)
	}
	return t.Flush()
}

func newClusterJoin() *cobra.Command {
	return orderCommand(admin.ChangeJoin, "join NAME=HOST:PORT", "Make a new server a member",
		"The server must run and wait: started with a name that is not in --initial-servers,\n"+
			"with --advertise-address and the trust folder. It gets its vote once it has caught up.",
		"added", true)
}

func newClusterRemove() *cobra.Command {
	return orderCommand(admin.ChangeRemove, "remove NAME", "End the membership of a server",
		"A leader hands over first. Refused if the servers left could not write.", "removed", true)
}

func newClusterReplace() *cobra.Command {
	return orderCommand(admin.ChangeReplace, "replace NAME=HOST:PORT", "Move a member to another address or machine",
		"The server of the same name must run there and wait, with an empty data directory and the\n"+
			"trust folder. It catches up first, then the old one goes, then it votes.", "replaced", true)
}

func newClusterTransferLeader() *cobra.Command {
	return orderCommand(
		admin.ChangeTransfer,
		"transfer-leader [NAME]",
		"Make another server the leader, within milliseconds",
		"",
		"done",
		false,
	)
}

// orderCommand is a command that changes the membership.
func orderCommand(change, use, short, long, done string, needsName bool) *cobra.Command {
	var kubeconfig string
	cmd := &cobra.Command{Use: use, Short: short, Long: strings.TrimSpace(short + ".\n" + long)}
	cmd.Flags().StringVar(&kubeconfig, "kubeconfig", "", kubeconfigUsage)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		order := admin.MembershipChange{Change: change}
		if len(args) == 1 {
			order.Name, order.Address, _ = strings.Cut(args[0], "=")
		}
		if err := order.Validate(); err != nil {
			return usageError{err}
		}
		err := askServers(cmd.Context(), kubeconfig, changeWait, func(ctx context.Context, config *rest.Config) error {
			return admin.OrderChange(ctx, config, order)
		})
		if err == nil {
			fmt.Fprintln(cmd.OutOrStdout(), strings.TrimSpace(order.Name+" "+done))
		}
		return err
	}
	cmd = withSources(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) > 1 || needsName && len(args) == 0 {
			return usageError{fmt.Errorf("want %s: run '%s --help'", use, cmd.CommandPath())}
		}
		return nil
	}
	return cmd
}

// askServers asks one server after the other until admin.IsFinal says that no other one is to be asked.
func askServers(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error {
	configs, err := contexts(kubeconfig)
	if err != nil {
		return err
	}
	var failed []error
	for _, name := range slices.Sorted(maps.Keys(configs)) {
		ctx, cancel := context.WithTimeout(ctx, limit)
		err := ask(ctx, configs[name])
		cancel()
		if admin.IsFinal(err) {
			return err
		}
		failed = append(failed, err)
	}
	return fmt.Errorf("no server answers: %w", errors.Join(failed...))
}
