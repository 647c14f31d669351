package rotate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/rotation"
	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/rotations"
)

// orderWait bounds how long one server may take: it asks all members what they hold.
const orderWait = 30 * time.Second

var errBoth = errors.New("--status and --abort exclude each other, and --keep-old")

const long = `Replace a key of the cluster while everything runs: all members trust the new one, then use it, then drop the old one.

Each step begins when all members say that they hold what it needs; a server that is away is waited for, and told by name. The command
begins the rotation and returns: --status says how far it is, --abort goes back while the old one is still there.

  serving    the servers' own certificates: each server makes itself another one, with another key
  sa-key     the key that signs tokens of service accounts. The new one is published for an hour before it is used, and the old one is
             trusted for 25 hours after that, until the tokens of all pods are renewed; both for no longer than --keep-old says. Then
             tokens that were signed with it end: those in Secrets, and long ones of 'kubectl create token'
  gossip-key the key that encrypts gossip between servers and nodes. Nodes that are away are not waited for: they get it when they come
             back. Whoever was shut out with 'setpoint revoke' does not
  encryption-key
             the key that encrypts Secrets in the store. When all use the new one, the leader writes again what the old one has encrypted,
             up to 200 objects a second, and the old one goes 90 seconds after nothing is left. Refused with
             --encryption-provider-config
  front-proxy
             the authority by which aggregated API servers know the servers. They read of it in the ConfigMap
             extension-apiserver-authentication of kube-system, and have a minute for that before the new one is used, and before the old
             one goes

` + longCA + `
The kind tokens is refused, with what to do instead.`

const examples = `  setpoint rotate sa-key
  setpoint rotate sa-key --status
  setpoint rotate sa-key --keep-old 0s      # it leaked: drop it as soon as all use the new one
  setpoint rotate sa-key --abort
  setpoint rotate gossip-key                # after 'setpoint revoke node/NAME': a machine was stolen`

// Shell is what all commands share: how servers are asked, and how it is printed what they say.
type Shell struct {
	// KubeconfigUsage and OutputUsage describe the flags of these names.
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskServers asks one server after the other until one answers, each for a limited time.
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Print prints a value as --output wants it, CheckOutput says whether it can.
	Print       func(w io.Writer, output string, value any, table func(io.Writer) error) error
	CheckOutput func(output string) error
	// Mistake is an error of the command line.
	Mistake func(error) error
	// Escaped writes what others have named.
	Escaped func(io.Writer) io.Writer
}

// options are the flags of the command.
type options struct {
	*Shell
	kubeconfig, output string
	status, abort      bool
	keepOld            time.Duration
}

// Command is `setpoint rotate`.
func (s *Shell) Command() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use: "rotate KIND", Short: "Replace a key of the cluster, or the servers' certificates, while everything runs", Long: long, Example: examples,
		ValidArgs: names(rotation.Kinds()),
	}
	cmd.Flags().StringVar(&o.kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", s.OutputUsage)
	cmd.Flags().BoolVar(&o.status, "status", false, "only say how far it is, and who is waited for")
	cmd.Flags().BoolVar(&o.abort, "abort", false, "go back to the old one")
	cmd.Flags().DurationVar(&o.keepOld, "keep-old", rotation.AccountKeyKept,
		"of sa-key, of ca (there 168h), of gossip-key (there 0s), of front-proxy (there 1m) and of encryption-key (there 90s, or more), how long the old one is "+
			"trusted after the new one is used; asked again, it changes the "+
			"rotation that is under way")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		if len(args) != 1 {
			return s.Mistake(fmt.Errorf("%w: run '%s --help'", rotation.ErrKind, cmd.CommandPath()))
		}
		return nil
	}
	return cmd
}

func names(kinds []rotation.Kind) (all []string) {
	for _, k := range kinds {
		all = append(all, string(k))
	}
	return all
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	order, err := o.order(rotation.Kind(args[0]), cmd.Flags().Changed("keep-old"))
	if err != nil {
		return o.Mistake(err)
	}
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	var progress rotation.Progress
	err = o.AskServers(cmd.Context(), o.kubeconfig, orderWait, func(ctx context.Context, config *rest.Config) (err error) {
		progress, err = admin.OrderRotation(ctx, config, order)
		return err
	})
	if err != nil {
		return err
	}
	return o.Print(cmd.OutOrStdout(), o.output, progress, func(w io.Writer) error {
		_, err := fmt.Fprintln(o.Escaped(w), line(order, progress)+endingWithCA(order, progress))
		return err
	})
}

// order is what the flags say.
func (o *options) order(kind rotation.Kind, keeps bool) (rotations.Order, error) {
	order := rotations.Order{Kind: kind, Order: rotations.Begin}
	if err := kind.Validate(); err != nil {
		return order, err
	}
	switch {
	case o.status && o.abort, keeps && (o.status || o.abort):
		return order, errBoth
	case o.status:
		order.Order = rotations.Status
	case o.abort:
		order.Order = rotations.Abort
	case keeps:
		order.KeepOld = &metav1.Duration{Duration: o.keepOld}
	}
	return order, nil
}

// line says what became of an order.
func line(order rotations.Order, p rotation.Progress) string {
	switch {
	case order.Order == rotations.Status:
		return p.Line()
	case order.Order == rotations.Abort && p.Changed:
		return "it goes back: " + p.Line()
	case order.Order == rotations.Abort:
		return "it goes back already: " + p.Line()
	case p.Changed && p.WasUnderWay:
		return fmt.Sprintf("it was under way already, and the old one is kept for %s now: %s", p.KeepOld.Duration, p.Line())
	case p.Changed && p.Phase == rotation.Use && p.Kind != rotation.Serving, p.Changed && p.Phase == rotation.Drop: // by an older server
		return "it was under way already: " + p.Line()
	case p.Changed:
		return "begun: " + p.Line()
	}
	return "it was under way already: " + p.Line()
}
