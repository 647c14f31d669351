package past

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/past"
)

var (
	errDiffArgs = errors.New("name a time, another one if it is not now, and a kind if not all: run 'setpoint diff 1h' or 'setpoint diff 2h 1h deployments'")
	errBoth     = errors.New("use -n or -A, not both")
)

// diffOptions are the flags of `setpoint diff`.
type diffOptions struct {
	*Shell
	kubeconfig, output, namespace string
	all                           bool
}

// Diff is `setpoint diff`.
func (s *Shell) Diff() *cobra.Command {
	o := &diffOptions{Shell: s}
	cmd := &cobra.Command{
		Use:   "diff TIME [TIME|now] [KIND]",
		Short: "Show what was made, changed and deleted between two times, and by whom",
		Long: "Show which objects were created, changed, deleted or replaced by others of their names from a time up to another one or to now,\n" +
			"by namespace and kind, who wrote them, and, of what is the same object at both times, which fields differ. Events and Leases are\n" +
			"told if they are named. Times are written as for 'setpoint at'.\n\n" +
			"Any server answers, from the history on its own disk. You see the kinds that you may list in the namespace, or with -A everywhere;\n" +
			"values of Secrets are not shown. At most 2,000 objects are told: those that changed first, and how many others did.",
		Example: "  setpoint diff '1h ago'\n  setpoint diff 2h 1h deployments -n shop\n  setpoint diff 2026-03-04T10:30:00Z now -A -o json",
	}
	s.AddFlags(cmd, &o.kubeconfig, &o.output)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the objects (default: that of the kubeconfig's context)")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "all namespaces, and objects without one")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // run judges them
	cmd.ValidArgsFunction = s.completeDiff
	return cmd
}

func (o *diffOptions) run(cmd *cobra.Command, args []string) error {
	span, err := spanOf(args, time.Now())
	if err == nil && o.all && o.namespace != "" {
		err = errBoth
	}
	if err != nil {
		return o.Mistake(err)
	}
	if err := o.CheckOutput(o.output); err != nil {
		return err
	}
	if !o.all {
		if span.Namespace, err = o.Namespace(o.namespace, o.kubeconfig); err != nil {
			return err
		}
	}
	var answer past.Difference
	err = o.AskServers(cmd.Context(), o.kubeconfig, askLimit, func(ctx context.Context, config *rest.Config) (err error) {
		answer, err = admin.FetchDiff(ctx, config, span)
		return err
	})
	if err != nil {
		return err
	}
	p := diffPrinter{lines: lines{escaped: o.Escaped, colors: o.Colors(cmd.OutOrStdout())}}
	return o.Print(cmd.OutOrStdout(), o.output, answer, func(w io.Writer) error { return p.print(w, &answer) })
}

// spanOf reads TIME [TIME] [KIND]. What stands second and is no time is a kind.
func spanOf(args []string, now time.Time) (s past.Span, err error) {
	if len(args) < 1 || len(args) > 3 {
		return s, errDiffArgs
	}
	if s.From, err = ParseTime(args[0], now); err != nil {
		return s, err
	}
	rest := args[1:]
	if len(rest) > 0 {
		to, err := ParseTime(rest[0], now)
		switch {
		case err == nil:
			s.To, rest = to, rest[1:]
		case len(rest) == 2:
			return s, fmt.Errorf("%q: %w", rest[0], err)
		}
	}
	if s.To.Equal(now) { // the server's now, and not this machine's
		s.To = time.Time{}
	}
	switch len(rest) {
	case 0:
		return s, nil
	case 1:
		s.Kind = rest[0]
		return s, nil
	}
	return s, errDiffArgs
}
