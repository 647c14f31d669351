package past

import (
	"context"
	"errors"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/server/admin"
	"github.com/setpoint-io/setpoint/server/named"
	"github.com/setpoint-io/setpoint/server/past"
)

// askLimit bounds how long one server may take.
const askLimit = 30 * time.Second

var (
	errArgs  = errors.New("name one object, as KIND/NAME: run 'setpoint history deploy/web'")
	errSince = errors.New("--since must be more than 0")
)

// Shell is what all commands share: how servers are asked, and how it is printed what they say.
type Shell struct {
	// KubeconfigUsage and OutputUsage describe the flags of these names.
	KubeconfigUsage, OutputUsage string
	// Finish adds the flags of every command.
	Finish func(cmd *cobra.Command) *cobra.Command
	// AskServers asks one server after the other until one answers, each for a limited time.
	AskServers func(ctx context.Context, kubeconfig string, limit time.Duration, ask func(context.Context, *rest.Config) error) error
	// ContextNamespace is that of a kubeconfig's context.
	ContextNamespace func(kubeconfig string) (string, error)
	// CompleteObject completes KIND/NAME.
	CompleteObject func(cmd *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective)
	// Print prints a value as --output wants it, CheckOutput says whether it can.
	Print       func(w io.Writer, output string, value any, table func(io.Writer) error) error
	CheckOutput func(output string) error
	// Mistake is an error of the command line.
	Mistake func(error) error
	// Escaped writes what others have named, Colors says whether a writer's reader likes colours.
	Escaped func(io.Writer) io.Writer
	Colors  func(io.Writer) bool
}

// AddFlags adds the flags that all these commands have.
func (s *Shell) AddFlags(cmd *cobra.Command, kubeconfig, output *string) {
	cmd.Flags().StringVar(kubeconfig, "kubeconfig", "", s.KubeconfigUsage)
	cmd.Flags().StringVarP(output, "output", "o", "table", s.OutputUsage)
}

// Namespace is the one that a flag names, or that of the kubeconfig's context.
func (s *Shell) Namespace(flag, kubeconfig string) (string, error) {
	if flag != "" {
		return flag, nil
	}
	return s.ContextNamespace(kubeconfig)
}

// options are the flags of the command.
type options struct {
	*Shell
	kubeconfig, output, namespace string
	since                         time.Duration
}

// History is `setpoint history`.
func (s *Shell) History() *cobra.Command {
	o := &options{Shell: s}
	cmd := &cobra.Command{
		Use:   "history KIND/NAME",
		Short: "Show what an object was: when it changed, who did it, because of what, and which fields",
		Long: "Show the changes of an object, oldest first: when, by whom and with which manager, because of which other write, and what changed.\n" +
			"Deleted objects are told of too, and former objects of the same name. Any server answers, from the history on its own disk: by\n" +
			"default the last 24 hours ('setpoint server --history-retention').\n\n" +
			"Whoever may get the object now may ask. Values of Secrets are not shown. 'kubectl get --raw' with resourceVersion=N and\n" +
			"resourceVersionMatch=Exact shows an object as it was after the change N.",
		Example: "  setpoint history deploy/web\n  setpoint history cm/settings -n shop --since 1h\n  setpoint history pod/web-0 -o json",
	}
	s.AddFlags(cmd, &o.kubeconfig, &o.output)
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the object (default: that of the kubeconfig's context)")
	cmd.Flags().DurationVar(&o.since, "since", 0, "only changes younger than this: 10m, 2h (default: all that are kept)")
	cmd.RunE = o.run
	cmd = s.Finish(cmd)
	cmd.Args = cobra.ArbitraryArgs // run judges them
	cmd.ValidArgsFunction = s.CompleteObject
	cmd.AddCommand(s.purge())
	return cmd
}

func (o *options) run(cmd *cobra.Command, args []string) error {
	question, err := QuestionOf(args, errArgs)
	if err == nil && cmd.Flags().Changed("since") && o.since <= 0 {
		err = errSince
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
	var answer past.Answer
	err = o.AskServers(cmd.Context(), o.kubeconfig, askLimit, func(ctx context.Context, config *rest.Config) (err error) {
		if o.since > 0 {
			question.Since = time.Now().Add(-o.since)
		}
		answer, err = admin.FetchHistory(ctx, config, question)
		return err
	})
	if err != nil {
		return err
	}
	p := printer{lines: lines{escaped: o.Escaped, colors: o.Colors(cmd.OutOrStdout())}, namespace: answer.Object.Namespace}
	return o.Print(cmd.OutOrStdout(), o.output, answer, func(w io.Writer) error { return p.print(w, answer) })
}

// QuestionOf reads the one argument KIND/NAME; mistake says what is wanted.
func QuestionOf(args []string, mistake error) (past.Question, error) {
	if len(args) != 1 {
		return past.Question{}, mistake
	}
	kind, name, found := strings.Cut(args[0], "/")
	if !found || kind == "" || name == "" || strings.Contains(name, "/") {
		return past.Question{}, mistake
	}
	return past.Question{Question: named.Question{Kind: kind, Name: name}}, nil
}
