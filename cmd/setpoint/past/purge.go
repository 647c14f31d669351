package past

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/past"
)

var (
	errPurgeArgs = errors.New("name one object, as KIND/NAME: run 'setpoint history purge secret/key --yes'")
	errNotYes    = errors.New("this cannot be undone: what the object was is removed on all servers, and what it is stays; add --yes to do it")
)

// purgeOptions are the flags of `setpoint history purge`.
type purgeOptions struct {
	*Shell
	kubeconfig, output, namespace string
	yes                           bool
}

// purge is `setpoint history purge`.
func (s *Shell) purge() *cobra.Command {
	o := &purgeOptions{Shell: s}
	cmd := &cobra.Command{
		Use:   "purge KIND/NAME",
		Short: "Remove what an object was from the history of all servers",
		Long: "Remove the values of an object's history, up to now, on all servers: what it is stays, and so does that it changed, when and by whom.\n" +
			"No server answers GET, LIST, history or diff with them any more; each removes them from its files, one that is away when it comes\n" +
			"back. Reads at a resourceVersion before are refused with 410, for the object and for lists in which it was. A watch that goes on from\n" +
			"before may get them from a server that lags.\n\n" +
			"For administrators: whoever may delete an object could otherwise remove what they did to it. The audit log has it. The servers' logs\n" +
			"and snapshots have the values until they are compacted, and backups that were made before for as long as they are kept.",
		Example: "  setpoint history purge secret/key -n shop --yes",
	}
	s.AddFlags(cmd, &o.kubeconfig, &o.output)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object (default: that of the kubeconfig's context)")
	cmd.Flags().BoolVar(&o.yes, "yes", false, "do it: it cannot be undone")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // run judges them
	cmd.ValidArgsFunction = s.CompleteObject
	return cmd
}

func (o *purgeOptions) run(cmd *cobra.Command, args []string) error {
	question, err := QuestionOf(args, errPurgeArgs)
	if err == nil && !o.yes {
		err = errNotYes
	}
	if err != nil {
		return o.Mistake(err)
	}
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	if question.Namespace, err = o.Namespace(o.namespace, o.kubeconfig); err != nil {
		return err
	}
	var purged past.Purged
	err = o.AskServers(cmd.Context(), o.kubeconfig, askLimit, func(ctx context.Context, config *rest.Config) (err error) {
		purged, err = admin.OrderPurge(ctx, config, question.Question)
		return err
	})
	if err != nil {
		return err
	}
	return o.Print(cmd.OutOrStdout(), o.output, purged, func(w io.Writer) error {
		return printPurged(o.Escaped(w), &purged)
	})
}

func printPurged(w io.Writer, p *past.Purged) error {
	_, err := fmt.Fprintf(w, "what %s was up to revision %d is purged\n", p.Object, p.ResourceVersion)
	if err == nil && p.Unheard {
		_, err = fmt.Fprintln(w, "the server that did it knows of no such object: if no server does, the name is a mistake")
	}
	return err
}
