package revoke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/revocation"
	"github.com/setpoint-io/setpoint/server/admin"
)

const (
	// removeWait bounds how long one server may take to remove another.
	removeWait = 30 * time.Second
	// removeSoon bounds it while there are others to ask: the one that is shut out cannot, and may be the first.
	removeSoon = 10 * time.Second
)

// Shell is what all commands share: how servers are asked, and how it is printed what they say.
type Shell struct {
	// KubeconfigUsage and OutputUsage describe the flags of these names.
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskAPI asks the API of one server after the other until one answers, AskServers their services, each for a limited time.
	AskAPI     func(ctx context.Context, kubeconfig string, ask func(context.Context, kubernetes.Interface) error) error
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Print prints a value as --output wants it, CheckOutput says whether it can.
	Print       func(w io.Writer, output string, value any, table func(io.Writer) error) error
	CheckOutput func(output string) error
	// Mistake is an error of the command line.
	Mistake func(error) error
	// Escaped writes what others have named.
	Escaped func(io.Writer) io.Writer
}

// Command is `setpoint revoke`, with what is below it.
func (s *Shell) Command() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use: "revoke KIND/NAME", Short: "Shut out a stolen machine, a user or a leaked token, or let them in again", Long: long, Example: examples,
	}
	o.flags(cmd)
	cmd.Flags().BoolVar(&o.undo, "undo", false, "let it in again: its name is free")
	cmd.Flags().StringVar(&o.certificate, "certificate", "", certificateUsage)
	cmd.RunE = o.run
	cmd.AddCommand(s.list())
	cmd = s.Finish(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return s.Mistake(fmt.Errorf("%w: run '%s --help'", revocation.ErrTarget, cmd.CommandPath()))
		}
		return nil
	}
	return cmd
}

// options are the flags of one command.
type options struct {
	*Shell
	kubeconfig, output, certificate string
	undo                            bool
}

func (o *options) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", o.KubeconfigUsage)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", o.OutputUsage)
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	target, err := Parse(args[0], o.certificate)
	if err != nil {
		return o.Mistake(err)
	}
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	if err := o.mayRevoke(cmd.Context(), target); err != nil {
		return err
	}
	var result Result
	err = o.AskAPI(cmd.Context(), o.kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
		result, err = Change(ctx, client, target, o.undo, time.Now())
		return Elsewhere(err)
	})
	if err != nil {
		return err
	}
	err = o.Print(cmd.OutOrStdout(), o.output, result, func(w io.Writer) error {
		_, err := fmt.Fprintln(o.Escaped(w), result.Line())
		return err
	})
	if err != nil || target.Kind != revocation.Server || o.undo {
		return err
	}
	return o.remove(cmd, target.Name)
}

// mayRevoke refuses what would shut out who asks.
func (o *options) mayRevoke(ctx context.Context, target revocation.Target) error {
	if target.Key == "" || o.undo {
		return nil
	}
	var own error
	err := o.AskServers(ctx, o.kubeconfig, removeWait, func(_ context.Context, config *rest.Config) error {
		own = notOwn(config, target.Key)
		return nil
	})
	return cmp.Or(own, err)
}

// remove ends the membership of a server that is shut out.
func (o *options) remove(cmd *cobra.Command, name string) error {
	order := admin.MembershipChange{Change: admin.ChangeRemove, Name: name}
	remove := func(ctx context.Context, config *rest.Config) error { return admin.OrderChange(ctx, config, order) }
	err := o.AskServers(cmd.Context(), o.kubeconfig, removeSoon, remove)
	if !admin.IsFinal(err) {
		err = o.AskServers(cmd.Context(), o.kubeconfig, removeWait, remove)
	}
	switch refusal := (*admin.Refusal)(nil); {
	case errors.As(err, &refusal) && refusal.StatusCode == http.StatusNotFound:
		return nil // it was no member
	case err != nil:
		return fmt.Errorf("server/%s is revoked, and still a member: run 'setpoint cluster remove %s': %w", name, name, err)
	}
	_, err = fmt.Fprintln(cmd.ErrOrStderr(), name, "removed from the members")
	return err
}

func (s *Shell) list() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{Use: "list", Short: "Show what is shut out, since when"}
	o.flags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var entries []Entry
		err := o.AskAPI(cmd.Context(), o.kubeconfig, func(ctx context.Context, client kubernetes.Interface) (err error) {
			entries, err = List(ctx, client)
			return err
		})
		if err != nil {
			return err
		}
		return o.Print(cmd.OutOrStdout(), o.output, entries, func(w io.Writer) error { return printList(o.Escaped(w), entries) })
	}
	return s.Finish(cmd)
}

func printList(w io.Writer, entries []Entry) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "REVOKED\tSINCE\tKEY")
	for _, e := range entries {
		fmt.Fprintf(t, "%s\t%s\t%s\n", e.Target, e.At.UTC().Format(time.RFC3339), e.Key)
	}
	return t.Flush()
}
