package loops

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
)

// askTimeout bounds how long one server may take.
const askTimeout = 5 * time.Second

var errIdle = errors.New("--idle is for passes: add -w or --object")

// Shell is what all commands share.
type Shell struct {
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskServers asks one server after the other, until admin.IsFinal.
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// Print prints a value as a table or as it is encoded, CheckOutput refuses other forms.
	Print       func(w io.Writer, output string, value any, table func(io.Writer) error) error
	CheckOutput func(output string) error
	// Escaped writes without control characters, Mistake is an error of the command line.
	Escaped func(w io.Writer) io.Writer
	Mistake func(error) error
}

// options are the flags.
type options struct {
	*Shell
	kubeconfig, output, object string
	watch, idle                bool
}

// Command is `setpoint loops`.
func (s *Shell) Command() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use:   "loops",
		Short: "Show what the control loops do: what waits, fails, is slow or writes in circles, and each pass",
		Long: "Show one row for each control loop, those with trouble first, and below them the keys that fail.\n" +
			"Any server may be asked; the answer is that of the server on which the loops act.\n\n" +
			"OLDEST is how long the first key waits, RETRIES, PASSES and IDLE are since that server's start, WRITES/MIN of the last minute.\n" +
			"IDLE are the passes that found nothing to do. DEPTH of the scheduler are pods to be tried now, FAILING those whose binding was\n" +
			"refused. SLOWEST are the keys whose passes took longest in the last ten minutes. -o json has all of it.\n\n" +
			"With -w, show each pass of a loop as it ends, if it wrote or failed: what was wanted and observed, and what was done.\n" +
			"With --object, show passes that were about an object, wrote it, or acted because of it: without -w those of the last 1,000\n" +
			"passes of all loops, which the server remembers. With --idle, also passes that found nothing to do.",
		Example: "  setpoint loops\n  setpoint loops -w\n  setpoint loops --object default/web --idle",
	}
	s.common(cmd, &o.kubeconfig)
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", s.OutputUsage)
	cmd.Flags().BoolVarP(&o.watch, "watch", "w", false, "show passes as they end, until Ctrl-C")
	cmd.Flags().BoolVar(&o.idle, "idle", false, "show also passes that found nothing to do")
	cmd.Flags().StringVar(&o.object, "object", "", "show passes about the object of this name: NAMESPACE/NAME, or NAME")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.AddCommand(s.pause(), s.step(), s.resume())
	return cmd
}

func (s *Shell) common(cmd *cobra.Command, kubeconfig *string) {
	cmd.Flags().StringVar(kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
}

func (o *options) run(cmd *cobra.Command, _ []string) error {
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	switch {
	case o.watch:
		return o.follow(cmd)
	case o.object != "":
		return o.remembered(cmd)
	case o.idle:
		return o.Mistake(errIdle)
	}
	report, err := o.fetch(cmd.Context(), nil)
	if err != nil {
		return err
	}
	return o.Print(cmd.OutOrStdout(), o.output, report, func(w io.Writer) error { return printLoops(o.Escaped(w), report) })
}

// fetch asks for the loops and, if from is not nil, for passes from that number on.
func (o *options) fetch(ctx context.Context, from *uint64) (report admin.LoopsReport, err error) {
	err = o.AskServers(ctx, o.kubeconfig, askTimeout, func(ctx context.Context, config *rest.Config) (err error) {
		if from == nil {
			report, err = admin.FetchLoops(ctx, config)
		} else {
			report, err = admin.FetchPasses(ctx, config, *from)
		}
		return err
	})
	return report, err
}
